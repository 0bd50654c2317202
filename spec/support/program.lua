--- The program that is tested: CROWN_LUA, or the one that lies here.
return os.getenv "CROWN_LUA" or "./crown-lua"
