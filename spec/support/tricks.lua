--- What a server may do that is none, or not well: scripts of support.hostile by what they do. No client may take any of it for an
-- answer.
return {
  ["accepts and closes, as a load balancer does"] = "close",
  ["closes after the first words"] = "wait 0.02\nreset",
  ["is silent"] = "",
  ["says half an answer and goes"] = "say HTTP/1.1 200 OK\\r\\nContent-Length: 100\\r\\n\\r\\n{\\\"a\nclose",
  ["sends a byte now and then"] = "drip HTTP/1.1 200 OK\\r\\nContent-Length: 10\\r\\n\\r\\n{\\\"a\\\":1}",
  ["floods with lines"] = "flood INFO x\\r\\n",
  ["floods without lines"] = "flood x",
  ["floods with numbers of RESP"] = "flood :5\\r\\n",
  ["says a length that is too large"] = "say $99999999999999\\r\\n*2147483647\\r\\n",
  ["says that a very long array follows"] = "say *2147483647\\r\\n\nwait 0.05\nclose",
  ["nests without end"] = "flood *1\\r\\n",
  ["redirects without end"] = "say HTTP/1.1 302 X\\r\\nLocation: /\\r\\nContent-Length: 0\\r\\n\\r\\n",
  ["says a long answer in pieces of a byte"] = "say HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n\nflood 1\\r\\n{\\r\\n",
  ["answers with JSON that is none of what was asked for"] =
    "say HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\nConnection: close\\r\\n\\r\\nnull\nclose",
  ["says a message of Postgres that is too long"] = "say R\\0\\0\\0\nwait 0.05\nsay \127\127\127",
  ["speaks TLS' alerts"] = "say \21\3\1\\0\2\2\40",
  ["says NUL"] = "flood \\0",
}
