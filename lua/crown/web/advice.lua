--- The alarms of the status page, the worst first: what is wrong, what to do first, and more for who opens the help.
-- `key` names the list of crown.web.glance, and the place in the help; `page` and `heading` the place in the docs.
-- @internal crown.web.advice

return {
  { key = "unfenced", level = "bad", text = "a command works on without leading",
    page = "docs/troubleshooting.md", heading = "An alert woke you",
    first = "End it: its process is in the column Command.",
    more = "The command was told by a signal that it does not lead any more, and has no handler for it. Use crown-lua run "
      .. "without --signal, or with --fence." },
  { key = "unkillable", level = "bad", text = "a process cannot be killed, so the lease is kept",
    page = "docs/troubleshooting.md", heading = "A child will not die",
    first = "Kill it as root. If it hangs on a disk, mend the disk.",
    more = "The event child.unkillable in the log names the process and says why. While it lives, no other host leads." },
  { key = "away", level = "bad", text = "the store gives no answer",
    page = "docs/troubleshooting.md", heading = "Nobody leads",
    first = "On this host: crown-lua status --stores",
    more = "It names the server and the last error. A leader leads on until its lease ends. When the store is back, one "
      .. "leader comes back by itself: nothing needs a restart." },
  { key = "failing", level = "bad", text = "the store answers with a failure",
    page = "docs/troubleshooting.md", heading = "Nobody leads",
    first = "Read its words: crown-lua status --stores",
    more = "Mostly it is a login, a right that is missing, or a server that takes no writes. crown-lua check --store run NAME "
      .. "COMMAND, with the settings of the service, says which." },
  { key = "looping", level = "bad", text = "the command keeps ending by itself",
    page = "docs/troubleshooting.md", heading = "It flaps: the leader changes all the time",
    first = "Run the command by hand, as the same user.",
    more = "The log has how it ended (child.exited). After some tries this host stands back for a minute, so that another one "
      .. "can try." },
  { key = "overdue", level = "bad", text = "the job is overdue: due, and neither done nor running",
    page = "docs/how-to/cron.md", heading = "When it did not run at all",
    first = "On any host: crown-lua info --jobs",
    more = "Are the services up that run crown-lua cron? Is the job paused (crown-lua resume NAME)? Does another job of its "
      .. "name run still?" },
  { key = "failed", level = "warn", text = "the job has failed",
    page = "docs/how-to/cron.md", heading = "When it fails on one host",
    first = "Read the job's output in the log of the host in the column Node.",
    more = "It runs again when it is due, and before that as often as its retries say. crown-lua redo NAME lets it begin at "
      .. "once." },
  { key = "doubted", level = "warn", text = "the store may have forgotten who leads: nobody claims for a while",
    page = "docs/troubleshooting.md", heading = "\"amnesia\"",
    first = "Wait: it ends by itself.",
    more = "The store is new, was restored, or has failed over. In a store that is new, ?trust_empty=true in the URL skips "
      .. "the wait. If this comes again and again, the store loses what it has confirmed." },
}
