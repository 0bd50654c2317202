-- Writes the C source that holds the Lua modules: luajit tools/embed.lua FILE.lua… > embedded.c
-- lua/crown/init.lua is the module `crown`, lua/crown/x.lua is `crown.x`, lua/oracles/x.lua is `crown.oracles.x`.

local function module_name(path)
  local name = path:gsub("^lua/", ""):gsub("^oracles/", "crown/oracles/"):gsub("%.lua$", "")
  return (name:gsub("/init$", ""):gsub("/", "."))
end

-- String literals longer than 4095 bytes are beyond what C11 promises, so the bytes go out as an array.
local function bytes_of(source)
  local out, line = {}, {}
  for i = 1, #source do
    line[#line + 1] = source:byte(i)
    if #line == 24 then
      out[#out + 1] = table.concat(line, ",")
      line = {}
    end
  end
  line[#line + 1] = "0"
  out[#out + 1] = table.concat(line, ",")
  return table.concat(out, ",\n")
end

io.write('#include "lua/embedded.h"\n\n')
local rows = {}
for i, path in ipairs(arg) do
  local file = assert(io.open(path, "rb"))
  local source = file:read "*a"
  file:close()
  io.write(("static const unsigned char source_%d[] = {\n%s};\n"):format(i, bytes_of(source)))
  rows[#rows + 1] = ('    {"%s", "%s", (const char *)source_%d, %d},\n')
    :format(module_name(path), path:gsub("^lua/", ""), i, #source)
end
io.write("\nconst struct embedded_module embedded_modules[] = {\n", table.concat(rows), "    {0, 0, 0, 0},\n};\n")
