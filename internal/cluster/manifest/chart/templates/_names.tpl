{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "wherry.labels" -}}
app.kubernetes.io/part-of: wherry-debug
app.kubernetes.io/managed-by: wherry
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}
{{- define "wherry.image" -}}
{{ .Values.image | default (printf "ghcr.io/wherryproject/wherry:%s" .Chart.AppVersion) | quote }}
{{- end -}}
{{- define "wherry.pod" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with .Values.priorityClass }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end -}}
{{- define "wherry.volumes" -}}
- name: tmp
  emptyDir: {}
- name: account
  projected:
    defaultMode: 420
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                apiVersion: v1
                fieldPath: metadata.namespace
{{- end -}}
{{- define "wherry.mounts" -}}
- name: tmp
  mountPath: /tmp
- name: account
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end -}}
