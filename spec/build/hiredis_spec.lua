-- hiredis 1.x counts in other types than the 0.14 of Debian 12, and knows more kinds of replies.
local crown = require "crown"

describe("what speaks to hiredis", function()
  for name, flags in pairs { ["the version that is installed"] = {}, ["version 1.2"] = { "-Ispec/build/hiredis_1" } } do
    for _, file in ipairs { "redis_codec", "bind_resp" } do
      it(("compiles with %s: %s.c"):format(name, file), function()
        local words = { "/usr/bin/gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow",
          "-fsyntax-only" }
        for _, flag in ipairs(flags) do words[#words + 1] = flag end
        for _, word in ipairs { "-Iruntime", "-I/usr/include/luajit-2.1", ("runtime/bind/%s.c"):format(file) } do
          words[#words + 1] = word
        end
        local result = assert(crown.exec(words, { timeout = 60 }))
        assert.equal(0, result.code, result.stderr)
      end)
    end
  end
end)
