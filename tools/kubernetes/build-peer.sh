#!/bin/sh
# build-peer.sh FOLDER: builds kube-apiserver and a peer that elects by client-go (spec/support/client_go) from Debian's source
# package of Kubernetes, into FOLDER. Takes some minutes and 3 GB the first time; nothing of it is committed.
# Go 1.19 and reflect2 are Debian's packages (group `kubernetes` of tools/packages).
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
say() { echo "kubernetes-peer: $*" >&2; }

# The source package, without a change of the host's own lists.
fetch() {
    [ ! -e "$folder/source/cmd/kube-apiserver" ] || return 0
    say "fetches the source package"
    mkdir -p "$folder/apt/lists/partial" "$folder/download"
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb-src [signed-by=$keyring] http://deb.debian.org/debian bookworm main" >"$folder/apt/sources.list"
    (
        cd "$folder/download"
        set -- -q -o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
            -o "Dir::State::lists=$folder/apt/lists" -o APT::Sandbox::User=
        apt-get "$@" update >/dev/null
        apt-get "$@" source kubernetes >"$folder/fetch.log" 2>&1 || { cat "$folder/fetch.log" >&2; exit 1; }
    )
    rm -rf "$folder/source"
    mv "$folder"/download/kubernetes-*/ "$folder/source"
}

# The package's own copy of reflect2 panics with this Go at the first object that is written.
mend() {
    rm -rf "$folder/source/vendor/github.com/modern-go/reflect2"
    cp -rL /usr/share/gocode/src/github.com/modern-go/reflect2 "$folder/source/vendor/github.com/modern-go/reflect2"
    rm -f "$folder"/source/vendor/github.com/modern-go/reflect2/*_test.go
    rm -rf "$folder/source/cmd/elector"
    mkdir "$folder/source/cmd/elector"
    cp "$here/spec/support/client_go/elector.go" "$folder/source/cmd/elector/main.go"
}

build() { # build PACKAGE NAME
    say "builds $2"
    go build -tags providerless -o "$folder/bin/$2" "k8s.io/kubernetes/$1"
}

# The source package lacks what openapi-gen makes.
generate() {
    [ ! -s pkg/generated/openapi/zz_generated.openapi.go ] || return 0
    build vendor/k8s.io/kube-openapi/cmd/openapi-gen openapi-gen
    inputs=$(grep -rl --include='*.go' '+k8s:openapi-gen=' pkg vendor/k8s.io staging 2>/dev/null |
        grep -v 'code-generator/\|sample-apiserver/\|kube-openapi/' | xargs -n1 dirname |
        sed 's|^staging/src/|vendor/|' | LC_ALL=C sort -u | sed 's|^|k8s.io/kubernetes/|' | paste -sd,)
    "$folder/bin/openapi-gen" --logtostderr -i "$inputs" -p k8s.io/kubernetes/pkg/generated/openapi \
        -O zz_generated.openapi -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r "$folder/openapi.report"
}

fetch
mend
export GOPATH="$folder/go" GOCACHE="$folder/cache" GO111MODULE=off CGO_ENABLED=0 GOFLAGS=
mkdir -p "$GOPATH/src/k8s.io" "$folder/bin"
ln -sfn "$folder/source" "$GOPATH/src/k8s.io/kubernetes"
cd "$GOPATH/src/k8s.io/kubernetes"
generate
build cmd/elector elector
build cmd/kube-apiserver kube-apiserver
say "in $folder/bin"
