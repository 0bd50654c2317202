--- How one logs in to S3: by the environment, a profile, or the service of the container or of the instance. What is found may be
-- replaced at any time, so it is read again.
-- @internal crown.s3.login

local calendar = require "crown.text.calendar"
local http = require "crown.http"
local json = require "crown.text.json"
local profile = require "crown.s3.profile"
local read_file = require "crown.text.read_file"

local login = {}

local INSTANCE, CONTAINER = "http://169.254.169.254", "http://169.254.170.2"
local ROLES = "/latest/meta-data/iam/security-credentials/"
local PASS_SECONDS = "21600"
local INSTANCE_SECONDS = 2 -- where there is no such service nobody answers

local function variable(name)
  local value = os.getenv(name)
  return value and value ~= "" and value or nil
end

local function of_environment()
  for _, name in ipairs { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN" } do
    if (os.getenv(name) or ""):find "%c" then
      return nil, name .. " has the end of a line in it, or another byte that no key has: was it read from a file as it is?"
    end
  end
  local id, secret = variable "AWS_ACCESS_KEY_ID", variable "AWS_SECRET_ACCESS_KEY"
  if not id and not secret then return nil end
  if not (id and secret) then return nil, "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set" end
  return { id = id, secret = secret, token = variable "AWS_SESSION_TOKEN", from = "the environment" }
end

local function of_profile(found, name)
  local id, secret = found.aws_access_key_id, found.aws_secret_access_key
  if id and secret then return { id = id, secret = secret, token = found.aws_session_token, from = "a profile" } end
  if found.refused then return nil, found.refused end
  if id or secret then return nil, "the profile has only one of aws_access_key_id and aws_secret_access_key" end
  if name then return nil, ("the profile '%s' has no keys"):format(name) end
end

-- Both services answer in this form.
local function of_answer(answer, problem, from)
  if not answer then return nil, ("the login from %s: %s"):format(from, problem) end
  local found = answer.status == 200 and json.object(answer.body)
  if not found or type(found.AccessKeyId) ~= "string" or type(found.SecretAccessKey) ~= "string" then
    return nil, ("the login from %s: it answered %d, and no keys"):format(from, answer.status)
  end
  return { id = found.AccessKeyId, secret = found.SecretAccessKey, token = found.Token, over = calendar.seconds(found.Expiration),
    from = from }
end

local function of_container(timeout)
  local whole, relative = variable "AWS_CONTAINER_CREDENTIALS_FULL_URI", variable "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
  if not whole and not relative then return nil end
  local pass, file = variable "AWS_CONTAINER_AUTHORIZATION_TOKEN", variable "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
  if file then
    local text, problem = read_file(file)
    if not text then return nil, problem end
    pass = text:match "^%s*(.-)%s*$"
  end
  local answer, problem = http.request { url = relative and CONTAINER .. relative or whole, headers = { Authorization = pass },
    timeout = timeout }
  return of_answer(answer, problem, "the container's service")
end

local function of_instance(timeout)
  local base = (variable "AWS_EC2_METADATA_SERVICE_ENDPOINT" or INSTANCE):gsub("/+$", "")
  local function ask(method, path, headers)
    local answer, problem = http.request { url = base .. path, method = method, headers = headers, timeout = timeout }
    if answer and answer.status ~= 200 then return nil, ("it answered %d"):format(answer.status) end
    return answer, problem
  end
  local pass, problem = ask("PUT", "/latest/api/token", { ["X-aws-ec2-metadata-token-ttl-seconds"] = PASS_SECONDS })
  local role, headers = nil, pass and { ["X-aws-ec2-metadata-token"] = pass.body }
  if pass then role, problem = ask("GET", ROLES, headers) end
  if not role then return of_answer(nil, problem, "the instance's service") end
  local answer
  answer, problem = ask("GET", ROLES .. role.body:match "^%s*(%S*)", headers)
  return of_answer(answer, problem, "the instance's service")
end

--- Finds a login.
-- @string[opt] name of the profile that the user wants, which goes before the environment
-- @number timeout seconds for a question to a service
-- @treturn table `{ id =, secret =, token =, over = when it ends, in seconds since 1970, from = words }`; or nil and a message
function login.find(name, timeout)
  local found, problem
  if not name then found, problem = of_environment() end
  if found or problem then return found, problem end
  local said
  said, problem = profile.read(name)
  if not said then return nil, problem end
  found, problem = of_profile(said, name)
  if found or problem then return found, problem end
  found, problem = of_container(timeout)
  if found or problem then return found, problem end
  if variable "AWS_WEB_IDENTITY_TOKEN_FILE" then
    return nil, "AWS_WEB_IDENTITY_TOKEN_FILE names a role for a service account, which crown-lua does not take: use EKS Pod "
      .. "Identity"
  end
  if variable "AWS_EC2_METADATA_DISABLED" == "true" then
    return nil, "there is no login: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile"
  end
  found, problem = of_instance(math.min(timeout, INSTANCE_SECONDS))
  if found then return found end
  return nil, ("there is no login in the environment and in no profile, and %s"):format(problem)
end

return login
