"""Everything that speaks SQL to Postgres; the only folder that imports psycopg."""
