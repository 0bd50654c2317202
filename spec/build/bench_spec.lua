-- What the benchmarks say of what they have measured, and the plots that are drawn of it.
package.path = "./bench/?.lua;" .. package.path

local percentile = require "percentile"
local program = require "support.program"
local crown = require "crown"
local read_file = require "crown.text.read_file"
local Record = require "record"
local tempdir = require "support.tempdir"

describe("the benchmarks", function()
  it("say the median and the 99th percentile", function()
    local values = {}
    for i = 1, 200 do values[i] = i end
    assert.equal(100.5, percentile(values, 0.5))
    assert.equal(198, percentile(values, 0.99))
    assert.equal(7, percentile({ 7 }, 0.5))
    assert.equal(20, percentile({ unpack(values, 1, 20) }, 0.99))
    assert.equal(2, percentile({ 1, 2, 3 }, 0.5))
  end)

  it("keep every figure, and replace what is measured anew", function()
    local path = tempdir() .. "/figures"
    local first = Record.open(path)
    for _, value in ipairs { 3, 1.5 } do first:add("one, SIGTERM", value) end
    first:add("two", 9)
    local second = Record.open(path)
    second:add("one, SIGTERM", 4)
    second:add("three", 5)
    assert.same({ { name = "one, SIGTERM", values = { 4 } }, { name = "two", values = { 9 } }, { name = "three", values = { 5 } } },
      Record.read(path))
    assert.same({}, Record.read(path .. "-none"))
    Record.open(""):add("nowhere", 1)
  end)

  it("draw a plot of the failovers of each store, and one of growth", function()
    local dir = tempdir()
    local record = Record.open(dir .. "/figures")
    for i = 1, 20 do
      record:add("redis, SIGTERM, beyond the child's last tick", 4 + i / 10)
      record:add("etcd 2 s, runtime SIGKILL", 20 + i)
    end
    record:add("growth, TTL 30 s, 1 leases: memory in MB", 2.5)
    record:add("growth, TTL 30 s, 10,000 leases: memory in MB", 30)
    local drawn = assert(crown.exec { program, "bench/plot.lua", dir .. "/figures", dir })
    assert.equal(0, drawn.code, drawn.stderr)
    local failover, growth = read_file(dir .. "/failover.svg"), read_file(dir .. "/growth.svg")
    assert.equal(40, select(2, failover:gsub('class="dot"', "")))
    assert.matches(">redis<", failover)
    assert.matches("30%.5 · 40%.0 ms, n = 20", failover)
    assert.matches(">30<", growth)
    for _, svg in ipairs { failover, growth } do
      assert.equal(select(2, svg:gsub("<text", "")), select(2, svg:gsub("</text>", "")))
      assert.matches("</svg>\n$", svg)
      assert.is_nil(svg:find "nan" or svg:find "inf")
    end
  end)
end)
