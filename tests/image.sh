#!/usr/bin/env bash
# Builds the image as a machine without a network would, and runs it as a pod would: read-only, as 65532, without any
# capability, beside an agent stack in one network namespace. A transfer goes through; then Seam is told to end under a
# running stream, which has to end whole, with exit code 0. Prints the image's size.
#
# Needs root on Debian; installs docker.io and mmdebstrap. Takes minutes, most of them for the release build.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=$((20 * 1000 * 1000))

export DEBIAN_FRONTEND=noninteractive
if ! command -v dockerd > /dev/null || ! command -v mmdebstrap > /dev/null; then
    if [ "$(id -u)" != 0 ] || ! apt-get update -qq || ! apt-get install -y -qq --no-install-recommends docker.io mmdebstrap; then
        echo "SKIPPED: dockerd or mmdebstrap cannot be had; the image was neither built nor run"
        exit 0
    fi
fi

# The builder of this Docker is the old one, on purpose: the Dockerfile has to do without what newer ones know.
export DOCKER_BUILDKIT=0
work=$(mktemp -d /tmp/seam-image.XXXXXX)
docker() { command "$docker" -H "unix://$work/d.sock" "$@"; }
docker=/usr/bin/docker
[ -x "$docker" ] || docker=$(type -P docker)

finish() {
    docker rm -f seam pod > /dev/null 2>&1 || true
    if [ -f "$work/d.pid" ]; then
        local dockerd
        dockerd=$(cat "$work/d.pid")
        kill "$dockerd" || true
        while kill -0 "$dockerd" 2> /dev/null; do sleep 0.1; done
    fi
    rm -rf --one-file-system "$work"
}
trap finish EXIT

dockerd --data-root "$work/data" --exec-root "$work/exec" -H "unix://$work/d.sock" --pidfile "$work/d.pid" \
    --bridge=none --iptables=false --ip6tables=false > "$work/dockerd.log" 2>&1 &
for _ in $(seq 100); do
    docker version > /dev/null 2>&1 && break
    sleep 0.2
done
docker version > /dev/null || { tail "$work/dockerd.log"; exit 1; }

# Stand-ins for the two images of a registry: a Debian, and a Debian with this toolchain and all crates.
echo "==> base images"
mmdebstrap --quiet --variant=minbase --include=python3 bookworm "$work/pod.tar"
docker import "$work/pod.tar" agents:test > /dev/null
mmdebstrap --quiet --variant=minbase --include=gcc,libc6-dev bookworm "$work/root"
mkdir -p "$work/root/usr/local/rust" "$work/root/usr/local/cargo"
tar -C "$(rustc --print sysroot)" --exclude=./share -c . | tar -C "$work/root/usr/local/rust" -x
# What cargo prints is the configuration that makes it look there; the paths are the image's.
cargo vendor --locked "$work/root/usr/local/cargo/vendor" > "$work/vendored" 2> "$work/said" \
    || { tail "$work/said"; exit 1; }
sed "s#$work/root##" "$work/vendored" > "$work/root/usr/local/cargo/config.toml"
tar -C "$work/root" -c . | docker import --change "ENV PATH=/usr/local/rust/bin:/usr/bin:/bin CARGO_HOME=/usr/local/cargo CARGO_NET_OFFLINE=true" - rust:test > /dev/null
rm -rf "$work/root" "$work/pod.tar"

echo "==> the image, without a network"
docker build --quiet --network none --build-arg BUILDER=rust:test -t seam:test . > /dev/null
size=$(docker image inspect --format '{{.Size}}' seam:test)
echo "the image has $size bytes"
[ "$size" -lt "$limit" ] || { echo "that is more than $limit"; exit 1; }

echo "==> a pod"
docker run -d --name pod --network none -v "$PWD/tests/image.py:/image.py:ro" agents:test sleep infinity > /dev/null
docker run -d --name seam --network container:pod --read-only --user 65532:65532 --cap-drop ALL \
    --security-opt no-new-privileges -e SEAM_UPSTREAM=http://127.0.0.1:9000/v1 seam:test > /dev/null
for _ in $(seq 50); do
    docker exec seam /seam healthcheck 2> /dev/null && break
    sleep 0.1
done
docker exec seam /seam healthcheck

docker exec pod python3 /image.py > "$work/said" 2>&1 &
agents=$!
for _ in $(seq 100); do
    grep -q "a stream runs" "$work/said" && break
    kill -0 "$agents" 2> /dev/null || { cat "$work/said"; exit 1; }
    sleep 0.1
done
docker stop --time 30 seam > /dev/null
wait "$agents" || { cat "$work/said"; exit 1; }
cat "$work/said"
grep -q "the stream ended whole" "$work/said"
code=$(docker inspect --format '{{.State.ExitCode}}' seam)
echo "exit code $code"
[ "$code" = 0 ]
