#!/usr/bin/env bash
# Brings up Kubeflow Pipelines in kind on this machine, with Castell's image and rights in it.
set -euo pipefail

readonly KFP_VERSION=2.17.0
readonly HOST=http://localhost:8080
FOLDER=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly FOLDER
image=castell:0.1.0
cluster=castell
down=false

help() {
  cat <<EOF
usage: up.sh [--image NAME:TAG] [--cluster NAME] [--down]

Brings up Kubeflow Pipelines ${KFP_VERSION} in a kind cluster on this machine, loads the image that
Castell's steps run in, and prints how to submit a pipeline to it. Run it again after a failure or
with a new image: what is there already stays.

  --image NAME:TAG  image of the steps, as \`make image\` leaves it [${image}]
  --cluster NAME    name of the kind cluster [${cluster}]
  --down            delete the cluster, with all that is in it
  --help            this text

Needs docker, kind (0.24 or newer), kubectl and git, GitHub and ghcr.io in reach, 8 GB of memory for
docker, and port 8080. The first time takes some ten minutes, mostly for KFP's images.
EOF
}

fail() {
  echo "up.sh: error: $1" >&2
  exit 2
}

say() {
  echo "up.sh: $1" >&2
}

while (($#)); do
  case $1 in
    --image | --cluster)
      (($# > 1)) || fail "$1 needs a value"
      declare "${1#--}=$2"
      shift
      ;;
    --down) down=true ;;
    -h | --help)
      help
      exit
      ;;
    *) fail "$1: no such option (see --help)" ;;
  esac
  shift
done

need() {
  command -v "$1" >/dev/null || fail "$1 is not there: $2"
}
need docker "install Docker, https://docs.docker.com/engine/install/"
need kind "install it, https://kind.sigs.k8s.io/docs/user/quick-start/#installation"
need kubectl "install it, https://kubernetes.io/docs/tasks/tools/"
need git "install it: kubectl fetches KFP's manifests with it"
docker info >/dev/null 2>&1 || fail "docker does not answer: start it, or join the group docker"

if $down; then
  kind delete cluster --name "$cluster"
  exit
fi

docker image inspect "$image" >/dev/null 2>&1 ||
  fail "image $image is not there: \`make image IMAGE=$image\`, or name another with --image"

if kind get clusters 2>/dev/null | grep -qx "$cluster"; then
  say "cluster $cluster is there"
else
  kind create cluster --name "$cluster" --config "$FOLDER/kind.yaml" --wait 180s
fi
kubectl() { command kubectl --context "kind-$cluster" "$@"; }

say "loading $image (minutes, if it is new)"
# The control plane runs no steps, unless it is alone.
nodes=$(kind get nodes --name "$cluster")
workers=$(grep -v control-plane <<<"$nodes" || true)
kind load docker-image "$image" --name "$cluster" --nodes "$(paste -sd, - <<<"${workers:-$nodes}")"

say "applying Kubeflow Pipelines $KFP_VERSION"
kubectl apply -k \
  "https://github.com/kubeflow/pipelines//manifests/kustomize/cluster-scoped-resources?ref=$KFP_VERSION&timeout=180s"
kubectl wait crd/applications.app.k8s.io --for condition=established --timeout 60s
kubectl apply -k "$FOLDER/local"

say "waiting for its deployments"
kubectl wait deployment --all --namespace kubeflow --for condition=Available --timeout 900s ||
  fail "some are not available after 15 minutes: kubectl --context kind-$cluster --namespace kubeflow get pods"

# A cluster that kind.yaml did not make leads no port of this machine to the console.
if [[ -z $(docker port "$cluster-control-plane" 30080 2>/dev/null) ]]; then
  say "the cluster was made without its port; leave this running beside:"
  say "  kubectl --context kind-$cluster --namespace kubeflow port-forward service/ml-pipeline-ui 8080:80"
fi

cat <<EOF
Kubeflow Pipelines is at $HOST
  castell submit train_evaluate_export --target kfp --host $HOST --image $image \\
    --param sources=https://… --param label=COLUMN
Sources are addresses that the cluster can read. To remove it all: $0 --down
EOF
