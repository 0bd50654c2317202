// A holder for the comparison: takes a lock with the npm package redlock, runs a ticking child while it has it.
const { spawn } = require("child_process");
const { default: Redlock } = require("redlock");
const Redis = require("ioredis");

const [port, ticker, file] = process.argv.slice(2);
const redlock = new Redlock([new Redis({ port: Number(port) })], { retryCount: -1, retryDelay: 50, retryJitter: 20 });
redlock.on("error", () => {}); // somebody else has it
redlock.using(["bench"], 2000, { automaticExtensionThreshold: 1000 }, async signal => {
  const child = spawn(ticker, [file], { stdio: "ignore" });
  await new Promise(done => setInterval(() => signal.aborted && done(), 20));
  child.kill("SIGKILL");
});
