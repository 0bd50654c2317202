--- A store's notifications, on a connection of their own, so that nothing they do delays what is asked. Behind a pooler that
-- lends its connections out there are none.
-- @internal crown.postgres.notices

local postgres = require "crown.postgres"

local notices = {}

--- Listens, once; behind a pooler it says so, once.
-- @tparam table store `url`, `timeout`, `emit`; `listener` is set to the client
-- @tparam boolean pooled whether the connection is a pooler's
-- @string otherwise what happens without notifications, for the message
-- @string channel
-- @tparam function heard called with each payload
-- @tparam function missed called when some may have been missed
-- @tparam[opt] function begun called when the server listens first; else `missed` is
function notices.listen(store, pooled, otherwise, channel, heard, missed, begun)
  if pooled then
    if not store.told_pooled then
      store.emit("monitor.failed", { error = "behind a connection pooler there are no notifications: " .. otherwise })
    end
    store.told_pooled = true
    return
  end
  if store.listener then return end
  store.listener = postgres.new(store.url, { timeout = store.timeout, background = true, bounded = true })
  store.listener:listen(channel, heard, missed, begun or missed)
  store.emit("monitor.started", { channel = channel })
end

return notices
