"""What no schema says of the manifests: the sidecar's rights, its probes, and the one kind that is no part of Kubernetes.

Reads a built overlay, and writes it without that kind."""

import sys

import yaml

source, target = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    documents = [document for document in yaml.safe_load_all(file) if document]


def expect(what, holds):
    if not holds:
        sys.exit(f"{source}: {what}")


deployment = next(d for d in documents if d["kind"] == "Deployment" and d["metadata"]["name"] == "agents")
pod = deployment["spec"]["template"]["spec"]
native = [c for c in pod.get("initContainers", []) if c["name"] == "seam"]
ordinary = [c for c in pod["containers"] if c["name"] == "seam"]
expect("the sidecar is there once", len(native) + len(ordinary) == 1)
seam = (native or ordinary)[0]
rights = seam["securityContext"]
expect("it runs as a numeric user that is not root", rights["runAsNonRoot"] and rights["runAsUser"] == 65532)
expect("it has no rights", rights["capabilities"] == {"drop": ["ALL"]} and not rights["allowPrivilegeEscalation"])
expect("its root is read-only", rights["readOnlyRootFilesystem"] and rights["seccompProfile"]["type"] == "RuntimeDefault")
expect("it is bounded in memory", seam["resources"]["limits"]["memory"] and seam["resources"]["requests"]["memory"])
port = {port["name"]: port["containerPort"] for port in seam["ports"]}
for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
    expect(f"{probe} asks the admin port", port[seam[probe]["httpGet"]["port"]] == 8485)
if native:
    expect("a native sidecar is always restarted", seam["restartPolicy"] == "Always")
# The drain of 25 seconds fits, with a second for the farewell and two for the last spans.
expect("the pod waits for the drain", pod["terminationGracePeriodSeconds"] >= 30)

labels = deployment["spec"]["template"]["metadata"]["labels"]
policy = next(d for d in documents if d["kind"] == "NetworkPolicy" and d["metadata"]["name"] == "seam-admin")
monitors = [d for d in documents if d["kind"] == "PodMonitor"]
for selector in [policy["spec"]["podSelector"]] + [m["spec"]["selector"] for m in monitors]:
    expect("a selector finds the pod", selector["matchLabels"].items() <= labels.items())
for monitor in monitors:
    # Its schema belongs to the Prometheus operator, not to Kubernetes.
    expect("it is of the operator's version", monitor["apiVersion"] == "monitoring.coreos.com/v1")
    expect("it scrapes the admin port", [e["port"] for e in monitor["spec"]["podMetricsEndpoints"]] == ["seam-admin"])
    print("PodMonitor: no schema of Kubernetes has it; its selector and port were checked by hand")

with open(target, "w", encoding="utf-8") as file:
    yaml.safe_dump_all([d for d in documents if d["kind"] != "PodMonitor"], file)
