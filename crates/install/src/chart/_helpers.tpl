{{- /* Name of the Deployment, the ServiceAccount and the roles of the operator. */ -}}
{{- define "5spot.controller" -}}
{{- $.Values.fullnameOverride | default "5spot-controller" -}}
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
{{- if not .image.repository -}}
{{- fail (printf "%s.repository is not set; give the registry and repository of the image, such as registry.example/5spot" .path) -}}
{{- end -}}
{{- .image.repository -}}
{{- if .image.digest -}}
@{{ .image.digest }}
{{- else -}}
:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}
