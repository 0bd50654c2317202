--- The exit codes of the program, with a few words each: the manual pages print them, docs/command.md has them in full.
-- @internal crown.command.exit_codes

return {
  { "0", "done" },
  { "1", "failed" },
  { "2", "wrong usage, or an app that does not validate" },
  { "3", "the store could not be reached, or refused what it was asked" },
  { "126", "run: the command cannot be executed" },
  { "127", "run: there is no such command" },
  { "128 + N", "run: signal N ended the command; 137 also where it did not end when it was told to, and was killed" },
}
