// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/api/table"
)

// richPod has most of what a pod can have, in YAML.
const richPod = `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: "n", labels: {a: b}, annotations: {c: d}, finalizers: [x/y], ownerReferences: [{apiVersion: v1, kind: Node, name: "n", uid: u}]}
spec:
  restartPolicy: OnFailure
  shareProcessNamespace: true
  terminationGracePeriodSeconds: 5
  securityContext: {runAsUser: 1, fsGroup: 2, sysctls: [{name: a.b, value: "1"}], seccompProfile: {type: RuntimeDefault}}
  volumes:
  - {name: v, emptyDir: {sizeLimit: 1Gi, medium: Memory}}
  - {name: w, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 600}}, {configMap: {name: c, items: [{key: k, path: p}]}}, {downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}]}}
  - {name: h, hostPath: {path: /x, type: Directory}}
  initContainers:
  - {name: s, image: i, restartPolicy: Always, startupProbe: {httpGet: {port: 80}}, lifecycle: {preStop: {exec: {command: [a]}}}}
  containers:
  - name: c
    image: r.example/i:1
    command: [a, $(B)]
    ports: [{containerPort: 80, name: web, hostPort: 8080}]
    env: [{name: B, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}, {name: C, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}]
    envFrom: [{prefix: P_, configMapRef: {name: c}}]
    resources: {limits: {cpu: 1500m, memory: 1Gi, hugepages-2Mi: 2Mi}, requests: {cpu: 1}}
    volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(B), mountPropagation: Bidirectional}]
    livenessProbe: {tcpSocket: {port: web}, periodSeconds: 3}
    readinessProbe: {grpc: {port: 5}}
    securityContext: {privileged: true, capabilities: {add: [SYS_PTRACE], drop: [ALL]}}
  ephemeralContainers: [{name: e, image: i, targetContainerName: c}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Gt, values: ["1"]}]}]}}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}]
  tolerations: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
status: {phase: Running, podIP: 10.0.0.1, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: c, state: {running: {}}}]}
`

// FuzzBody: whatever the body of a create or an update is, in JSON, YAML or protobuf, of any kind, it is decoded, defaulted,
// prepared, judged, stored and printed, or refused; nothing panics.
func FuzzBody(f *testing.F) {
	s, err := schemes.New()
	if err != nil {
		f.Fatal(err)
	}
	all := ownKinds()
	media := s.Codecs.SupportedMediaTypes()
	dice := rand.New(rand.NewPCG(1, 2)) // the same at every run
	damages, oddities := 8, 400
	if flag.Lookup("test.fuzz").Value.String() != "" { // the fuzzer makes its own
		damages, oddities = 0, 0
	}
	for i, k := range all {
		obj := k.Object()
		obj.(metav1.Object).SetName("n")
		obj.GetObjectKind().SetGroupVersionKind(k.GV.WithKind(k.Name))
		for j, m := range media {
			var text bytes.Buffer
			if m.Serializer.Encode(obj, &text) != nil { // some kinds have no protobuf
				continue
			}
			f.Add(uint8(i), uint8(j), text.Bytes())
			for range damages {
				f.Add(uint8(i), uint8(j), damaged(dice, text.Bytes()))
			}
		}
		if k.Plural == "pods" {
			pod := createdPod(f, s, k)
			f.Add(uint8(i), uint8(1), []byte(richPod))
			f.Add(uint8(i), uint8(1), []byte(pod))
			for range oddities {
				f.Add(uint8(i), uint8(1), odd(dice, pod))
			}
		}
	}
	f.Add(uint8(0), uint8(0), []byte(`{"apiVersion":"v1","kind":"List","items":[null]}`))
	f.Add(uint8(0), uint8(1), []byte("a: &a [*a]"))
	f.Add(uint8(0), uint8(2), []byte("k8s\x00\x0a\x07\x0a\x02v1\x12\x01X\x12\x00"))
	f.Fuzz(func(t *testing.T, kindNumber, mediaNumber uint8, body []byte) {
		k, m := all[int(kindNumber)%len(all)], media[int(mediaNumber)%len(media)]
		gvk := k.GV.WithKind(k.Name)
		for _, serializer := range []runtime.Decoder{m.Serializer, m.StrictSerializer} {
			if serializer == nil {
				continue
			}
			obj, _, err := s.Codecs.DecoderToVersion(serializer, k.GV).Decode(body, &gvk, k.Object())
			if obj == nil || err != nil && !runtime.IsStrictDecodingError(err) {
				continue
			}
			live(t, s, k, obj)
		}
	})
}

// createdPod is richPod as it may be created: with nothing wrong, or all that is made of it would end at the first check.
func createdPod(f *testing.F, s *schemes.Schemes, k *registry.Kind) string {
	text := regexp.MustCompile(`(?m)^  ephemeralContainers: .*\n`).ReplaceAllString(richPod, "")
	pod, _, err := s.Codecs.UniversalDeserializer().Decode([]byte(text), nil, k.Object())
	if err != nil {
		f.Fatal(err)
	}
	s.Default(pod)
	st := registry.NewStrategy(s, k, k.Rules)
	st.PrepareForCreate(context.Background(), pod)
	if faults := st.Validate(context.Background(), pod); len(faults) > 0 {
		f.Fatal(faults.ToAggregate())
	}
	return text
}

// damaged changes some bytes, or takes some out.
func damaged(dice *rand.Rand, text []byte) []byte {
	text = slices.Clone(text)
	for range 1 + dice.IntN(4) {
		if at := dice.IntN(len(text)); dice.IntN(3) == 0 {
			text = append(text[:at:at], text[min(len(text), at+1+dice.IntN(4)):]...)
		} else {
			text[at] = byte(dice.IntN(256))
		}
		if len(text) == 0 {
			return text
		}
	}
	return text
}

// scalar is a value in YAML of the flow style.
var scalar = regexp.MustCompile(`: ?[^:,\[\]{}\n]+|\[[^\[\]]*\]|\{[^{}]*\}`)

// odd puts values that nobody expects in the place of some.
func odd(dice *rand.Rand, text string) []byte {
	values := []string{"null", `""`, "-1", "0", "[]", "{}", "[null]", "99999999999999999999", "1e999", "true", "'a/b'", "1500m", "-5Gi", "1.5.5", "[{}]", `"\u0000"`, "../..", "2026-13-45T00:00:00Z"}
	places := scalar.FindAllStringIndex(text, -1)
	for range 1 + dice.IntN(3) {
		at := places[dice.IntN(len(places))]
		if at[1] > len(text) {
			continue
		}
		value := values[dice.IntN(len(values))]
		if text[at[0]] == ':' {
			value = ": " + value
		}
		text = text[:at[0]] + value + text[at[1]:]
	}
	return []byte(text)
}

// live does with an object of a kind what its storage does.
func live(t *testing.T, s *schemes.Schemes, k *registry.Kind, obj runtime.Object) {
	if _, ok := obj.(metav1.Object); !ok {
		return // another kind's: the handlers refuse it by its kind
	}
	if got := objectKind(s, obj); got != k.Name {
		return
	}
	ctx := context.Background()
	lists := []registry.Rules{k.Rules}
	if k.Status != nil {
		lists = append(lists, *k.Status)
	}
	for _, r := range lists {
		st := registry.NewStrategy(s, k, r)
		made := obj.DeepCopyObject()
		st.PrepareForCreate(ctx, made)
		faults := st.Validate(ctx, made)
		for _, old := range []runtime.Object{made.DeepCopyObject(), emptyOf(s, k)} {
			next := obj.DeepCopyObject()
			st.PrepareForUpdate(ctx, next, old)
			st.ValidateUpdate(ctx, next, old)
			st.CheckGracefulDelete(ctx, next, &metav1.DeleteOptions{})
		}
		if len(faults) > 0 {
			continue
		}
		if _, _, err := k.Attrs()(made); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		printer, _ := table.For(k.Name)
		if _, err := printer.Row(made, time.Unix(0, 0)); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		text, err := runtime.Encode(k.StorageCodec(s), made)
		if err != nil {
			continue // too large, or what protobuf cannot hold
		}
		if _, err := runtime.Decode(k.StorageCodec(s), text); err != nil {
			t.Errorf("%s: what was stored cannot be read: %v", k.Name, err)
		}
	}
}

// objectKind is the name of an object's kind, by its Go type.
func objectKind(s *schemes.Schemes, obj runtime.Object) string {
	kinds, _, err := s.External.ObjectKinds(obj)
	if err != nil || len(kinds) == 0 {
		return ""
	}
	return kinds[0].Kind
}

// emptyOf is an object that has nothing but its defaults.
func emptyOf(s *schemes.Schemes, k *registry.Kind) runtime.Object {
	obj := k.Object()
	s.Default(obj)
	return obj
}
