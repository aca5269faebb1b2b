"""The Lua steps of claims in Redis. Each is atomic and goes by the server's clock.

Keys, all under `argus:scheduler:<namespace>:`
    fire:<job>:<due>    the claim: `<worker>|<token>`, never deleted, it only expires
    watermark           hash job → last due time answered for, in microseconds
    open                hash fire → `<state>|<worker>|<attempt>|<epoch>|<claimed at>|<token>`,
                        until it ends
    off                 hash job → who and why, of jobs that are switched off
    state:<job>         hash of the job's run state: last_status, last_run, run_count, …
    running:<job>       the guard of a manual run: `<worker>|<origin>`
    worker:<instance>   exists while that worker beats
A fire is named `<job>\\31<due in microseconds>\\31<origin>`.
"""

_NOW = """
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local prefix = KEYS[1]
local function at(name) return prefix .. name end
local function parts(text)
  local found = {}
  for part in string.gmatch(text, '([^|]+)') do table.insert(found, part) end
  return found
end
"""

# ARGV: worker, token, epoch, ttl, margin, then eight for each want: job, due, origin, outcome, room, rank,
# waits, name of the claim. A due time older than the TTL less the margin is refused: after its TTL the key
# would be granted again. So is one not after the watermark, unless its claim stands, which makes it lost.
CLAIM = (
    _NOW
    + """
local worker, token, epoch = ARGV[1], ARGV[2], ARGV[3]
local ttl, margin = tonumber(ARGV[4]), tonumber(ARGV[5])
local elsewhere = {}
local open = redis.call('HGETALL', at('open'))
for i = 1, #open, 2 do
  local run = parts(open[i + 1])
  if run[1] == 'running' and run[2] ~= worker then
    local job = string.match(open[i], '^(.-)\\31')
    elsewhere[job] = (elsewhere[job] or 0) + 1
  end
end
local answers = {}
for i = 6, #ARGV, 8 do
  local job, due, origin, outcome = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local room, rank, waits = tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5]), ARGV[i + 6] == '1'
  local key = at('fire:' .. job .. ':' .. ARGV[i + 7])
  local scheduled = origin == 'schedule'
  local watermark = tonumber(redis.call('HGET', at('watermark'), job) or '0')
  local full = outcome == 'running' and (elsewhere[job] or 0) + rank > room
  local answer
  if redis.call('HEXISTS', at('off'), job) == 1 then answer = 'disabled'
  elseif scheduled and tonumber(due) <= watermark then
    answer = redis.call('EXISTS', key) == 1 and 'lost' or 'refused'
  elseif scheduled and outcome == 'running' and tonumber(due) < now - (ttl - margin) * 1000000 then
    answer = 'refused'
    redis.call('HSET', at('watermark'), job, due)
  elseif full and waits then answer = 'wait'
  elseif redis.call('SET', key, worker .. '|' .. token, 'NX', 'EX', ttl) then
    answer = full and 'overlap' or 'won'
    if outcome == 'running' and not full then
      local run = {'running', worker, '1', epoch, string.format('%.0f', now), token}
      redis.call('HSET', at('open'), job .. '\\31' .. due .. '\\31' .. origin, table.concat(run, '|'))
    else
      redis.call('HSET', at('state:' .. job), 'last_status', full and 'skipped_overlap' or outcome)
    end
  else answer = 'lost' end
  local answered = answer == 'won' or answer == 'overlap' or answer == 'lost'
  if scheduled and answered and tonumber(due) > watermark then
    redis.call('HSET', at('watermark'), job, due)
  end
  table.insert(answers, answer)
end
return answers
"""
)

# ARGV: worker, epoch, then four for each orphan: fire, its state, its worker, its attempt.
# Answers with the attempt taken, 0 where another worker was faster.
RECLAIM = (
    _NOW
    + """
local answers = {}
for i = 3, #ARGV, 4 do
  local run = parts(redis.call('HGET', at('open'), ARGV[i]) or '')
  local attempt = 0
  if run[1] == ARGV[i + 1] and run[2] == ARGV[i + 2] and run[3] == ARGV[i + 3] then
    attempt = tonumber(run[3]) + (run[1] == 'running' and 1 or 0)
    local taken = {'running', ARGV[1], attempt, ARGV[2], string.format('%.0f', now), 'taken'}
    redis.call('HSET', at('open'), ARGV[i], table.concat(taken, '|'))
  end
  table.insert(answers, attempt)
end
return answers
"""
)

# ARGV: worker, then two for each fire: fire, attempt.
GIVE_BACK = (
    _NOW
    + """
for i = 2, #ARGV, 2 do
  local run = parts(redis.call('HGET', at('open'), ARGV[i]) or '')
  if run[1] == 'running' and run[2] == ARGV[1] and run[3] == ARGV[i + 1] then
    run[1] = 'given_back'
    redis.call('HSET', at('open'), ARGV[i], table.concat(run, '|'))
  end
end
"""
)

# ARGV: worker, token, then the fires.
DISOWN = (
    _NOW
    + """
for i = 3, #ARGV do
  local run = parts(redis.call('HGET', at('open'), ARGV[i]) or '')
  if run[1] == 'running' and run[2] == ARGV[1] and run[6] == ARGV[2] then
    run[1] = 'given_back'
    redis.call('HSET', at('open'), ARGV[i], table.concat(run, '|'))
  end
end
"""
)

# ARGV: outcome, then five for each run: fire, state, worker, attempt, job. Answers 1 for each it closed.
CLOSE = (
    _NOW
    + """
local answers = {}
for i = 2, #ARGV, 5 do
  local run = parts(redis.call('HGET', at('open'), ARGV[i]) or '')
  local mine = run[1] == ARGV[i + 1] and run[2] == ARGV[i + 2] and run[3] == ARGV[i + 3]
  if mine then
    redis.call('HDEL', at('open'), ARGV[i])
    redis.call('HSET', at('state:' .. ARGV[i + 4]), 'last_status', ARGV[1])
    local guard = at('running:' .. ARGV[i + 4])
    local origin = string.match(ARGV[i], '([^\\31]*)$')
    if redis.call('GET', guard) == ARGV[i + 2] .. '|' .. origin then redis.call('DEL', guard) end
  end
  table.insert(answers, mine and 1 or 0)
end
return answers
"""
)

# ARGV: worker, fire, attempt, job, origin, outcome, finished at, error, the most failures. Answers with the
# failures in a row when this run switched the job off, else 0.
FINISH = (
    _NOW
    + """
local worker, fire, attempt, job, origin, outcome = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local run = parts(redis.call('HGET', at('open'), fire) or '')
if run[2] == worker and run[3] == attempt then redis.call('HDEL', at('open'), fire) end
local guard = at('running:' .. job)
if redis.call('GET', guard) == worker .. '|' .. origin then redis.call('DEL', guard) end
local state = at('state:' .. job)
redis.call('HSET', state, 'last_status', outcome, 'last_run', ARGV[7])
redis.call('HINCRBY', state, 'run_count', 1)
if outcome == 'success' then
  redis.call('HSET', state, 'consecutive_failures', 0)
  return 0
end
redis.call('HSET', state, 'last_error', ARGV[8], 'last_error_at', ARGV[7])
local failures = redis.call('HINCRBY', state, 'consecutive_failures', 1)
if failures < tonumber(ARGV[9]) or redis.call('HEXISTS', at('off'), job) == 1 then return 0 end
redis.call('HSET', at('off'), job, 'scheduler: ' .. ARGV[8])
return failures
"""
)

# ARGV: worker, job, fire, origin, the most instances, ttl. Answers with {'won'}, {'disabled'} or
# {'already_running', owner, since}.
RUN_NOW = (
    _NOW
    + """
local worker, job = ARGV[1], ARGV[2]
if redis.call('HEXISTS', at('off'), job) == 1 then return {'disabled'} end
local open, running, owner, since = redis.call('HGETALL', at('open')), 0, '', ''
for i = 1, #open, 2 do
  local run = parts(open[i + 1])
  if run[1] == 'running' and string.match(open[i], '^(.-)\\31') == job then
    running, owner, since = running + 1, run[2], run[5]
  end
end
if running >= tonumber(ARGV[5]) then return {'already_running', owner, since} end
if not redis.call('SET', at('running:' .. job), worker .. '|' .. ARGV[4], 'NX', 'EX', tonumber(ARGV[6])) then
  return {'already_running', string.match(redis.call('GET', at('running:' .. job)), '^([^|]*)'), '0'}
end
local run = {'running', worker, '1', '0', string.format('%.0f', now), 'manual'}
redis.call('HSET', at('open'), ARGV[3], table.concat(run, '|'))
return {'won'}
"""
)
