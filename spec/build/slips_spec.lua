-- The generator of slips: tokens, what each operator makes of a snippet, which slips change nothing, which are sampled.
package.path = "tools/?.lua;" .. package.path
local crown = require "crown"
local generate = require "slips.generate"
local groups = require "slips.groups"
local made_by = require "mutants.made"
local plant = require "slips.plant"
local report = require "slips.report"
local sample = require "slips.sample"
local slip = require "slips.slip"
local tempdir = require "support.tempdir"
local tokens = require "slips.tokens"

local function words(text, language)
  local found = {}
  for _, token in ipairs((tokens(text, language))) do found[#found + 1] = token.word end
  return table.concat(found, " ")
end

-- What an operator makes of a text, one line each, in the order of their places.
local function made(operator, text, language)
  local found = {}
  for _, one in ipairs((generate(text, language))) do
    if one.operator == operator then found[#found + 1] = slip.apply(one, text) end
  end
  return found
end

-- In C slips are made in functions only.
local function in_c(operator, body)
  local found = made(operator, "void f(void)\n{" .. body .. "}", "c")
  for i, text in ipairs(found) do found[i] = text:match "^void f%(void%)\n{(.*)}$" end
  return found
end

local function in_lua(operator, text) return made(operator, text, "lua") end

describe("tokens", function()
  it("of C leave out comments and the preprocessor's lines", function()
    assert.equal("a -> b += 0x1fUL ; c >= 2", words("/* x */ a->b += 0x1fUL; // y\n#define Z 1 \\\n  2\nc>=2", "c"))
  end)

  it("of Lua leave out comments, and take long strings whole", function()
    assert.equal('a .. "b\\"-- c" ~= [[ d "e ]] .. 1.5e3', words('a.."b\\"-- c"~=[[ d "e ]]..1.5e3 --[[ f\n g ]] -- h', "lua"))
  end)

  it("know their lines and the other bracket", function()
    local list = tokens("f(\n a[1])", "lua")
    assert.same({ 1, 2, 7 }, { list[1].line, list[3].line, list[2].mate })
  end)
end)

describe("slips in C", function()
  it("swap, turn and count", function()
    assert.same({ "a = b <= c;" }, in_c("swap", "a = b < c;"))
    assert.same({ "a = b >= c;" }, in_c("turn", "a = b < c;"))
    assert.same({ "a = b + 3;" }, in_c("number", "a = b + 2;"))
    assert.same({ "char c[8]; d = -1; a = b - 3;" }, in_c("number", "char c[8]; d = -1; a = b - 2;"))
    assert.same({ "g(later(a, b));" }, in_c("swap", "g(earlier(a, b));"))
  end)

  it("do not take a pointer for a product, nor a sign for a difference", function()
    assert.same({}, in_c("swap", "struct x *y = z; lua_State *L = m; g(*y, -1, &z);"))
    assert.same({ "a = b / *c;" }, in_c("swap", "a = b * *c;"))
    -- Nobody is given the standard input's descriptor.
    assert.same({}, in_c("swap", "a = x->memfd < 0;"))
    assert.same({}, in_c("number", "a = fd >= 0;"))
    assert.same({ "a = x->memfd >= 0;" }, in_c("turn", "a = x->memfd < 0;"))
  end)

  it("make conditions constant, and have what is done once be done each time", function()
    assert.same({ "if (true) g(x);" }, in_c("always", "if (a && b) g(x);"))
    assert.same({ "if (false) g(x);" }, in_c("never", "if (a && b) g(x);"))
    assert.same({ "if (true) g(x);" }, in_c("once", "if (!a) g(x);"))
    assert.same({ "x = true ? b : c;" }, in_c("always", "x = a ? b : c;"))
  end)

  it("drop an operand with all that belongs to it", function()
    assert.same({ "x = a || b;", "x = a || c == 1;", "x = b && c == 1;", "x = a;" }, (function()
      local found = in_c("term", "x = a || b && c == 1;")
      table.sort(found, function(p, q) return #p == #q and p < q or #p > #q end)
      return { found[3], found[1], found[2], found[4] }
    end)())
  end)

  it("leave out a statement, but no declaration and no value that is returned", function()
    assert.same({ "int a = 1; ; return a;" }, in_c("delete", "int a = 1; g(a); return a;"))
    assert.same({ "; g(x);" }, in_c("once", "a->b = NULL; g(x);"))
  end)

  it("exchange neighbours that depend on each other, and plain arguments", function()
    assert.same({ "g(a); a = 1;" }, in_c("order", "a = 1; g(a);"))
    assert.same({}, in_c("order", "a = 1; b = 2;"))
    assert.same({}, in_c("order", "(void)close(a); (void)close(b);"))
    assert.same({ "(void)g(b); (void)close(a);" }, in_c("order", "(void)close(a); (void)g(b);"))
    assert.same({}, in_c("order", 'g(a); log_warn("%d", b);'))
    assert.same({}, in_c("order", "x = calloc(1, a);"))
    assert.same({ "g(b->c, a, h(1));" }, in_c("order", "g(a, b->c, h(1));"))
    assert.same({ "x = (struct s){.a = q, .b = p};" }, in_c("keys", "x = (struct s){.a = p, .b = q};"))
    assert.same({ 'printf("%d %d", b, a);' }, in_c("keys", 'printf("%d %d", a, b);'))
  end)

  it("pass over what is logged or asserted", function()
    assert.same({}, (generate('void f(void)\n{\n    log_warn("%d", a + 1);\n    assert(b < 2);\n}\n', "c")))
  end)
end)

describe("slips in Lua", function()
  it("swap, turn, count and negate", function()
    assert.same({ "a = b <= c" }, in_lua("swap", "a = b < c"))
    assert.same({ "a = b == c" }, in_lua("turn", "a = b ~= c"))
    assert.same({ "a = math.min(b, 1.5)" }, in_lua("swap", "a = math.max(b, 1.5)"))
    assert.same({ "a = math.max(b, 2.5)" }, in_lua("number", "a = math.max(b, 1.5)"))
    assert.same({ "a = not not b" }, in_lua("negation", "a = not b"))
  end)

  it("make conditions constant", function()
    assert.same({ "if true then f() elseif y then g() end", "if x then f() elseif true then g() end" },
      in_lua("always", "if x then f() elseif y then g() end"))
    assert.same({ "if true then f() end" }, in_lua("once", "if not x then f() end"))
    assert.same({ "if true then f() end" }, in_lua("once", "if x == nil then f() end"))
    assert.same({}, in_lua("never", "repeat f() until x"))
  end)

  it("drop an operand and exchange the sides of an `or` whose value counts", function()
    assert.same({ "a = b.c", "a = d(1)" }, (function()
      local found = in_lua("term", "a = b.c or d(1)")
      table.sort(found)
      return found
    end)())
    assert.same({ "a = d(1) or b.c" }, in_lua("order", "a = b.c or d(1)"))
    assert.same({}, in_lua("order", "if a or b then f() end"))
  end)

  it("leave out statements, also in functions within expressions", function()
    assert.same({ "f(function()  return 1 end)", "" }, (function()
      local found = in_lua("delete", "f(function() g() return 1 end)")
      table.sort(found, function(p, q) return #p > #q end)
      return found
    end)())
    assert.same({ "" }, in_lua("once", "self.x = nil"))
    assert.same({}, in_lua("delete", "local a = f()"))
  end)

  it("exchange what two fields and two arguments show", function()
    assert.same({ "x = { a = q, b = p }" }, in_lua("keys", "x = { a = p, b = q }"))
    assert.same({ 'x = ("%s %s"):format(b, a)' }, in_lua("keys", 'x = ("%s %s"):format(a, b)'))
  end)

  it("pass over what is logged or asserted", function()
    assert.same({}, (generate('log.info("x", 1 + 2) assert(a < 2)', "lua")))
  end)
end)

describe("every source", function()
  it("is read, and each slip in Lua is Lua", function() -- by itself: here a hook counts every line
    local result = assert(crown.exec({ "luajit", "tools/slips.lua", "check" }, { timeout = 120 }))
    assert.equal(0, result.code, result.stdout .. result.stderr)
    assert.matches("^slips: ok %(%d%d%d%d%d, ", result.stdout)
  end)
end)

describe("a slip that changes nothing", function()
  it("is seen by its bytecode", function()
    assert.is_true(plant.same_lua("local a = ...\nreturn a", "local a = ...\n\nreturn a"))
    assert.is_false(plant.same_lua("return 1", "return 2"))
  end)

  it("is named in its line, or in the line before, with its reason", function()
    local text = "a = b < 1 -- same (turn number): nobody asks\n-- same: nor here\na = b < 2\na = b < 3\n"
    local said = {}
    for _, one in ipairs((generate(text, "lua"))) do
      if one.operator == "turn" or one.operator == "swap" then said[#said + 1] = ("%d %s %s"):format(one.line, one.operator, one.same) end
    end
    table.sort(said)
    assert.same({ "1 swap nil", "1 turn nobody asks", "3 swap nor here", "3 turn nor here", "4 swap nil", "4 turn nil" }, said)
  end)
end)

describe("a mutant of the list", function()
  local function mutant(fields)
    fields.file, fields.breaks = "lua/crown/a.lua", fields.breaks or { "-" }
    return fields
  end
  local text = "if a < b then c = d or 'e' end"

  it("is known for one that an operator makes, however it is quoted", function()
    local of = made_by {}
    assert.equal("turn", of(mutant { before = "if a < b", after = "if a >= b" }, text))
    assert.equal("term", of(mutant { before = "or 'e'", after = "" }, text))
    assert.is_nil(of(mutant { before = "'e'", after = "'f'" }, text))
  end)

  it("stays where nothing else breaks its rule, or where a simulation has to find it", function()
    local one = mutant { before = "<", after = ">=", breaks = { "P1" } }
    assert.is_nil(made_by { one }(one, text))
    assert.equal("turn", made_by { one, mutant { breaks = { "P1" } } }(one, text))
    assert.is_nil(made_by {}(mutant { before = "<", after = ">=", by = "register:late:1000" }, text))
  end)
end)

describe("a sample", function()
  local function slips_of(file, count)
    local found = {}
    for i = 1, count do
      found[i] = { file = file, line = i, func = 1, operator = "swap", at = i, length = 1, to = "x" }
    end
    return found
  end

  local function names(list)
    local found = {}
    for i, one in ipairs(list) do found[i] = slip.name(one) end
    return found
  end

  it("is the same by the same seed, whatever else there is", function()
    local slips = slips_of("runtime/election/a.c", 50)
    local few = names(sample.in_order(slips, "one"))
    assert.same(few, names(sample.in_order(slips, "one")))
    assert.not_same(few, names(sample.in_order(slips, "two")))
    assert.equal("runtime/election/a.c:36:swap:36:1:x", few[1]) -- on every machine
  end)

  it("is to two fifths of the core", function()
    local slips = slips_of("runtime/process/a.c", 50)
    for _, file in ipairs { "lua/stores/b.lua", "lua/oracles/b.lua", "lua/crown/web/c.lua" } do
      for _, one in ipairs(slips_of(file, 50)) do slips[#slips + 1] = one end
    end
    local counts, order = {}, sample.in_order(slips, "x")
    for i = 1, 50 do counts[groups.of(order[i].file).part] = (counts[groups.of(order[i].file).part] or 0) + 1 end
    assert.same({ core = 20, register = 10, stores = 10, rest = 10 }, counts)
    assert.equal(200, #order)
  end)

  it("may be drawn of all that there are", function()
    local result = assert(crown.exec({ "luajit", "tools/slips.lua", "list", "n=1", "seed=x" }, { timeout = 120 }))
    assert.equal(0, result.code, result.stderr)
    assert.matches("^%S+:%d+ %l+: ", result.stdout)
  end)

  it("has one of each changed line, three of a function at most", function()
    local slips = slips_of("runtime/loop/a.c", 10)
    local lines = { [2] = true, [3] = true, [11] = true }
    assert.equal(2, #sample.of_changed(slips, "x", { ["runtime/loop/a.c"] = lines }))
    for i = 1, 10 do lines[i] = true end
    assert.equal(3, #sample.of_changed(slips, "x", { ["runtime/loop/a.c"] = lines }))
  end)
end)

describe("the rate", function()
  it("has Wilson's interval", function()
    local from, to = report.interval(104, 126)
    assert.near(0.750, from, 0.001)
    assert.near(0.882, to, 0.001)
    assert.near(0.278, select(2, report.interval(0, 10)), 0.001)
  end)

  it("has the chance that so few are killed", function()
    assert.near(0.05, report.chance(0, 1, 0.95), 1e-9)
    assert.near(0.173670, report.chance(3, 8, 0.6), 1e-6)
    assert.near(1, report.chance(8, 8, 0.6), 1e-9)
    assert.near(1, report.chance(0, 0, 0.6), 1e-9)
    assert.is_true(report.chance(500, 1000, 0.95) < 1e-9)
  end)

  it("is none where no slip was tried at all, as by workers that cannot build their copy", function()
    local directory = tempdir()
    local one = { file = "runtime/loop/a.c", line = 1, operator = "swap", at = 1, length = 1, to = "x" }
    assert.is_false(report.print({ one }, directory))
    assert.is_true(report.print({}, directory))
  end)

  it("is too low only where chance does not explain it", function()
    assert.is_true(report.too_low(104, 126, 0.95))
    assert.is_false(report.too_low(0, 1, 0.95))
    assert.is_false(report.too_low(0, 2, 0.95))
    assert.is_true(report.too_low(0, 3, 0.95))
    assert.is_false(report.too_low(3, 8, 0.8))
    assert.is_false(report.too_low(9, 10, 0.95))
    assert.is_false(report.too_low(8, 10, 0.95)) -- a few may be by chance
    assert.is_true(report.too_low(3, 10, 0.95))
    assert.is_false(report.too_low(0, 0, 0.95))
  end)
end)
