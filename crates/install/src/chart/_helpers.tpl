{{- /* Name of the Deployment, the ServiceAccount and the roles of the operator. */ -}}
{{- define "5spot.controller" -}}
{{- $.Values.fullnameOverride | default "5spot-controller" -}}
{{- end -}}
{{- /* Entries of an object or a list, if there are any. */ -}}
{{- define "5spot.entries" -}}
{{- with . -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}
{{- /* Fields by their names, without empty ones. */ -}}
{{- define "5spot.fields" -}}
{{- range $name, $value := . -}}
{{- with $value }}
{{ toYaml (dict $name .) }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* Labels of every object. */ -}}
{{- define "5spot.labels" -}}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
app.kubernetes.io/part-of: 5spot
{{- with $.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
{{- /* Whether a CRD stays when the chart is uninstalled. */ -}}
{{- define "5spot.crdPolicy" -}}
{{- if $.Values.crds.keep -}}
helm.sh/resource-policy: keep
{{- end -}}
{{- end -}}
{{- /* Reference of an image. */ -}}
{{- define "5spot.image" -}}
{{- $program := get (dict "image" "5spot-controller" "webhook.image" "5spot-webhook" "dashboard.image" "5spot" "agent.image" "5spot-reclaim-agent") .path -}}
{{- if not .image.repository -}}
{{- fail (printf "%s.repository is not set; give the registry and repository of the image, such as registry.example/%s" .path $program) -}}
{{- end -}}
{{- if and (ne $program "5spot") (hasSuffix "/5spot" .image.repository) -}}
{{- fail (printf "%s.repository %q is the image of the command line; give that of %s, such as registry.example/%s" .path .image.repository $program $program) -}}
{{- end -}}
{{- if not (regexMatch "^(localhost|[^/]*[.:][^/]*)/" .image.repository) -}}
{{- fail (printf "%s.repository %q has no registry; for Docker Hub, write docker.io/%s" .path .image.repository .image.repository) -}}
{{- end -}}
{{- .image.repository -}}
{{- if .image.digest -}}
@{{ .image.digest }}
{{- else -}}
:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- /* The profile without which a pod does not run. */ -}}
{{- define "5spot.appArmor" -}}
{{- if $.Values.appArmor -}}
appArmorProfile:
  type: RuntimeDefault
{{- end -}}
{{- end -}}
{{- /* The user namespace of a pod. */ -}}
{{- define "5spot.userNamespaces" -}}
{{- if $.Values.userNamespaces -}}
hostUsers: false
{{- end -}}
{{- end -}}
{{- /* The volume with time zones, and where it is mounted. */ -}}
{{- define "5spot.zoneinfoVolumes" -}}
{{- with $.Values.zoneinfo.volume -}}
volumes:
- name: zoneinfo
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}
{{- define "5spot.zoneinfoMounts" -}}
{{- with $.Values.zoneinfo.volume -}}
volumeMounts:
- name: zoneinfo
  mountPath: /usr/share/zoneinfo
  readOnly: true
{{- end -}}
{{- end -}}
{{- /* The plurals of the kinds of targets, by kind and group, and which have no namespace. */ -}}
{{- define "5spot.capacityKinds" -}}
{{- $clustered := list -}}
{{- range $.Values.capacity.targets -}}
{{- $kind := .kind -}}
{{- if .group -}}
{{- $kind = printf "%s.%s" .kind .group -}}
{{- end -}}
{{- if .clusterScoped -}}
{{- $clustered = append $clustered $kind -}}
{{- end -}}
{{- printf "%s: %s\n" $kind .resource -}}
{{- end -}}
clusterScoped: {{ sortAlpha $clustered | join "," | quote }}
{{- end -}}
