"""What Redis runs: each script happens wholly, and nothing else meanwhile. What is checked is checked before anything
is written, for Redis takes nothing back.
"""

APPLY = """
-- KEYS: the store, the list of what is to be done. ARGV: the frame where it stands, then the position as fields.
local store, ops = KEYS[1], KEYS[2]
local at = redis.call('HGET', store, 'frame') or ''
if at ~= ARGV[1] then redis.call('DEL', ops); return {'moved', at} end
local count = redis.call('LLEN', ops)
local todo = {}
for first = 0, count - 1, 5000 do
  for _, each in ipairs(redis.call('LRANGE', ops, first, first + 4999)) do todo[#todo + 1] = each end
end
local function each_op(act)
  local i = 1
  while i <= #todo do
    local name = store .. ':' .. todo[i + 1]
    if todo[i] == 'K' then
      local size = tonumber(todo[i + 5])
      local refused = act(true, name, todo[i + 2], todo[i + 3], todo[i + 4], i + 6, size)
      if refused then return refused end
      i = i + 6 + size
    else
      local refused = act(false, name, todo[i + 2], tonumber(todo[i + 3]), tonumber(todo[i + 4]))
      if refused then return refused end
      i = i + 5
    end
  end
end
local refused = each_op(function(keyed, name, key, one, two)
  if keyed then
    local there = redis.call('HGET', name .. ':' .. key, '_penstock') or ''
    if there ~= one then return {'unfit', name, key, one == '' and 'there' or 'missing'} end
  elseif two > 0 and tonumber(redis.call('HGET', name, key) or '0') < two then
    return {'unfit', name, key, 'missing'}
  end
end)
if refused then redis.call('DEL', ops); return refused end
each_op(function(keyed, name, key, one, two, first, size)
  if keyed then
    local row = name .. ':' .. key
    if one ~= '' then redis.call('DEL', row) end
    if two == '' then
      redis.call('SREM', name, key)
    else
      redis.call('HSET', row, '_penstock', two)
      for i = first, first + size - 1, 1000 do  -- a call takes only so many
        redis.call('HSET', row, unpack(todo, i, math.min(i + 999, first + size - 1)))
      end
      redis.call('SADD', name, key)
    end
  elseif one ~= 0 and redis.call('HINCRBY', name, key, one) == 0 then
    redis.call('HDEL', name, key)
  end
end)
for i = 2, #ARGV, 2 do redis.call('HSET', store, ARGV[i], ARGV[i + 1]) end
redis.call('DEL', ops)
return {'done'}
"""

SWAP = """
-- KEYS: the store, the one that was filled. ARGV: the frame where it stands, then the views of each as JSON.
local store, filled = KEYS[1], KEYS[2]
local at = redis.call('HGET', store, 'frame') or ''
if at ~= ARGV[1] then return {'moved', at} end
local function rows(prefix, view, act)
  local name = prefix .. ':' .. view.name
  if view.keyed then
    for _, key in ipairs(redis.call('SMEMBERS', name)) do act(name .. ':' .. key, ':' .. view.name .. ':' .. key) end
  end
  if redis.call('EXISTS', name) == 1 then act(name, ':' .. view.name) end
end
for _, view in ipairs(cjson.decode(ARGV[2])) do
  rows(store, view, function(name) redis.call('DEL', name) end)
end
for _, view in ipairs(cjson.decode(ARGV[3])) do
  rows(filled, view, function(name, rest) redis.call('RENAME', name, store .. rest) end)
end
redis.call('RENAME', filled, store)
return {'done'}
"""
