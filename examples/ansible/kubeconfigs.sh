#!/bin/sh
# Makes an identity and a kubeconfig for every ScheduledMachine of a namespace, in the cluster of the
# current context: kubeconfigs.sh NAMESPACE DIRECTORY
# A second run makes new tokens; those that were made before stay valid until they expire.
set -eu
namespace=$1
umask 077
mkdir -p "$2"
cd "$2"
server=$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}')
kubectl config view --raw --minify --flatten \
  -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d > ca.crt
for desk in $(kubectl get scheduledmachines -n "$namespace" -o jsonpath='{.items[*].metadata.name}'); do
  5spot generate agent --host "$namespace/$desk" | kubectl apply -f -
  token=$(kubectl create token "5spot-host-$desk" -n "$namespace" --duration 8760h)
  rm -f "$desk"
  set_up() { kubectl config --kubeconfig "$desk" "$@"; }
  set_up set-cluster desk --server "$server" --certificate-authority ca.crt --embed-certs
  set_up set-credentials desk --token "$token"
  set_up set-context desk --cluster desk --user desk
  set_up use-context desk
done
