#!/bin/sh
# A provider of schedules: publishes spec.enabled of every ManualSchedule as status.active.
#
# A provider of your own has to publish no more than this. It may add
# - nextTransitionTime, if it knows when active changes: lead times and CompleteByWindowEnd then work;
# - a condition Ready: while it is not True, what was decided last holds on.
#
# Usage: provider.sh [options of kubectl, such as --kubeconfig FILE]
set -eu

columns='{.metadata.namespace} {.metadata.name} {.metadata.generation} {.spec.enabled}{"\n"}'

# A status that is the same as the stored one is not written, so the loop comes to rest.
kubectl get manualschedules --all-namespaces --watch --output jsonpath="$columns" "$@" |
    while read -r namespace name generation enabled; do
        kubectl patch manualschedules "$name" --namespace "$namespace" --subresource status \
            --type merge "$@" \
            --patch "{\"status\": {\"active\": $enabled, \"observedGeneration\": $generation}}"
    done
