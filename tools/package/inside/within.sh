# shellcheck shell=bash
# within SECONDS COMMAND...: waits until it holds; else says so by the caller's fail
within() {
    local until=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $until ] || fail "not in time: $*"
        sleep 0.1
    done
}
