-- Steps that happen together or not at all: a key each, and five arguments each
-- (what to do, and what the step needs). Gives 1, or 0 where a value is not what
-- a put expects. A value stands behind its version of 16 digits: microseconds of
-- the server's clock, so that a key that comes back never has an old version.
local function argument(step, n)
  return ARGV[(step - 1) * 5 + n]
end

for step, key in ipairs(KEYS) do
  if argument(step, 1) == 'put' and redis.call('GETRANGE', key, 0, 15) ~= argument(step, 2) then
    return 0
  end
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local steps = {}

function steps.put(key, expected, value, ttl)
  local version = math.max(now, (tonumber(expected) or 0) + 1)
  redis.call('SET', key, string.format('%016.0f', version) .. value, 'PX', ttl)
end

function steps.add(key, member, cap, ttl)
  if redis.call('SCARD', key) < tonumber(cap) then
    redis.call('SADD', key, member)
  end
  redis.call('PEXPIRE', key, ttl)
end

function steps.note(key, member, cap, ttl, at)
  redis.call('ZADD', key, at, member)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('(%.0f', at - ttl))
  redis.call('ZREMRANGEBYRANK', key, 0, -cap - 1)
  redis.call('PEXPIRE', key, ttl)
end

function steps.remove(key)
  redis.call('DEL', key)
end

function steps.forget(key, member)
  redis.call('ZREM', key, member)
end

for step, key in ipairs(KEYS) do
  steps[argument(step, 1)](key, argument(step, 2), argument(step, 3), argument(step, 4), argument(step, 5))
end
return 1
