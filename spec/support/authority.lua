--- A certificate authority of the spec's own.
local crown = require "crown"
local tempdir = require "support.tempdir"

--- Makes `ca.crt`, and by it `s.crt` with `s.key` for 127.0.0.1, localhost and the name that
-- support.own_name_server knows; besides `other.crt`, of nobody's.
-- @treturn string the directory
return function()
  local dir = tempdir()
  local made = crown.exec({ "sh", "-c", ([[cd %s &&
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -subj /CN=ca -days 2 &&
    openssl req -newkey rsa:2048 -nodes -keyout s.key -out s.csr -subj /CN=localhost &&
    printf 'subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:store.test' > ext &&
    openssl x509 -req -in s.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out s.crt -days 2 -extfile ext &&
    openssl req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.crt -subj /CN=other -days 2]]):format(dir) },
    { timeout = 60 })
  assert(made and made.code == 0, made and made.stderr)
  return dir
end
