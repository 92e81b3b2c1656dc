{{- define "lance.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "lance.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "lance.labels" -}}
{{ include "lance.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "lance.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "lance.name" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "lance.keysSecret" -}}
{{ .Values.auth.existingSecret | default (printf "%s-keys" (include "lance.name" .)) }}
{{- end }}

{{- define "lance.hasKeys" -}}
{{- if or .Values.auth.existingSecret .Values.auth.keys }}yes{{ end }}
{{- end }}

{{- define "lance.isGuarded" -}}
{{- if or (include "lance.hasKeys" .) .Values.settings.token_issuers }}yes{{ end }}
{{- end }}

{{- define "lance.podDomain" -}}
{{ include "lance.name" . }}-pods.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "lance.scheme" -}}
{{ ternary "https" "http" (not (empty .Values.tls.existingSecret)) }}
{{- end }}

{{- define "lance.temporaryBytes" -}}
{{- $size := toString .Values.temporary.sizeLimit }}
{{- $number := regexFind "^[0-9]+" $size | int64 }}
{{- $unit := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- mul $number (get $unit (regexReplaceAll "^[0-9]+" $size "") | int64) }}
{{- end }}

{{- define "lance.spoolBytes" -}}
{{- if hasKey .Values.settings "max_spool_bytes" }}{{ get .Values.settings "max_spool_bytes" | int64 }}
{{- else }}{{ div (include "lance.temporaryBytes" . | int64) 2 }}{{ end }}
{{- end }}

{{- define "lance.check" -}}
{{- if not .Values.root }}{{ fail "root: expected the root of the catalog, found none" }}{{ end }}
{{- if and .Values.auth.insecure (include "lance.isGuarded" .) }}{{ fail "auth: expected keys, settings.token_issuers or insecure, found both" }}{{ end }}
{{- if not (or .Values.auth.insecure (include "lance.isGuarded" .)) }}{{ fail "auth: expected existingSecret, keys, settings.token_issuers or insecure, found none" }}{{ end }}
{{- if and .Values.auth.existingSecret .Values.auth.keys }}{{ fail "auth: expected existingSecret or keys, found both" }}{{ end }}
{{- $isElsewhere := false }}
{{- range .Values.env }}{{ if eq .name "TMPDIR" }}{{ $isElsewhere = true }}{{ end }}{{ end }}
{{- if and (not $isElsewhere) (gt (include "lance.spoolBytes" . | int64) (include "lance.temporaryBytes" . | int64)) }}{{ fail (printf "settings.max_spool_bytes: expected at most temporary.sizeLimit, %s, found %s" .Values.temporary.sizeLimit (include "lance.spoolBytes" .)) }}{{ end }}
{{- $isLocal := not (contains "://" .Values.root) }}
{{- if and $isLocal (not .Values.persistence.enabled) }}{{ fail "persistence: a root in a directory needs a volume" }}{{ end }}
{{- if and $isLocal (not (hasPrefix "/var/lib/lance-namespace/" .Values.root)) }}{{ fail "root: expected a directory below /var/lib/lance-namespace" }}{{ end }}
{{- if and .Values.persistence.enabled (gt (int .Values.replicas) 1) (not (has "ReadWriteMany" .Values.persistence.accessModes)) }}{{ fail "replicas: several servers of a directory need a volume of ReadWriteMany" }}{{ end }}
{{- end }}

{{- define "lance.claim" -}}
accessModes: {{ .Values.persistence.accessModes | toJson }}
{{- with .Values.persistence.storageClass }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.persistence.size }}
{{- end }}
