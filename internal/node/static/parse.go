// SPDX-License-Identifier: Apache-2.0

package static

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/manifest"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Annotations that mark a static pod, as the kubelet does.
const (
	HashAnnotation   = "kubernetes.io/config.hash" // its UID
	SourceAnnotation = "kubernetes.io/config.source"
	SeenAnnotation   = "kubernetes.io/config.seen" // when the node saw this manifest first
)

// Source is what kind of place a manifest came from.
type Source string

// Sources, as the annotation names them.
const (
	File Source = "file"
	HTTP Source = "http"
)

// criticalPriority is that of system-node-critical: static pods are never evicted, and others make room for them, as
// there may be no API server yet that could give them a priority.
const criticalPriority int32 = 2000001000

// Origin is where a manifest came from.
type Origin struct {
	Source Source
	Place  string // path or URL, for people
	Node   string // that runs the pods
}

// Parse makes the pods of a manifest: one or several documents, or lists. With any fault there are none.
func Parse(o Origin, text []byte) ([]*corev1.Pod, error) {
	text, empty := unlisted(text)
	if empty {
		return nil, nil
	}
	objects, err := manifest.Decode(o.Place, text)
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	var faults []error
	for _, obj := range objects {
		pod, ok := obj.Object.(*corev1.Pod)
		if !ok {
			faults = append(faults, fmt.Errorf("%s:%d: is a %s; only pods can be static", o.Place, obj.Line,
				obj.GVK.Kind))
			continue
		}
		if err := o.complete(pod); err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: pod %q: %w", o.Place, obj.Line, pod.Name, err))
			continue
		}
		pods = append(pods, pod)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return pods, nil
}

// unlisted makes a List of a PodList, whose items need not say what they are, and reports whether it is an empty one.
// Other text stays as it is.
func unlisted(text []byte) (out []byte, empty bool) {
	var list struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Items      []map[string]any `json:"items"`
	}
	if !bytes.Contains(text, []byte("List")) || yaml.Unmarshal(text, &list) != nil || list.APIVersion != "v1" ||
		list.Kind != "PodList" && list.Kind != "List" {
		return text, false
	}
	if len(list.Items) == 0 || list.Kind == "List" {
		return text, len(list.Items) == 0
	}
	list.Kind = "List"
	for _, item := range list.Items {
		if item["kind"] == nil {
			item["apiVersion"], item["kind"] = "v1", "Pod"
		}
	}
	if json, err := json.Marshal(list); err == nil {
		return json, false
	}
	return text, false
}

// complete makes of a pod as it was written one that this node runs.
func (o Origin) complete(pod *corev1.Pod) error {
	if pod.Name == "" {
		return errors.New("metadata.name is required: a static pod has no API server that could generate one")
	}
	pod.TypeMeta, pod.Status = metav1.TypeMeta{}, corev1.PodStatus{}
	uid, err := o.uid(pod)
	if err != nil {
		return err
	}
	pod.ObjectMeta = metav1.ObjectMeta{Name: nameOn(pod.Name, o.Node), Namespace: pod.Namespace, UID: uid,
		Labels: pod.Labels, Annotations: o.annotations(pod.Annotations, uid)}
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	pod.Spec.NodeName = o.Node
	podspec.SetDefaults(pod)
	if len(pod.Spec.EphemeralContainers) > 0 {
		return errors.New("static pods do not support ephemeral containers")
	}
	if all := podspec.Validate(pod); len(all) > 0 {
		return all.ToAggregate()
	}
	if what := needsAPI(pod); what != "" {
		return fmt.Errorf("static pods may not reference %s", what)
	}
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = new(criticalPriority)
	}
	if o.Source == File {
		tolerateAll(&pod.Spec)
	}
	return nil
}

// nameOn is a static pod's name: there may be one of the same manifest on every node.
func nameOn(name, node string) string { return name + "-" + strings.ToLower(node) }

// uid derives a pod's UID. Its file's name is not in it: a file that is renamed is the same pod.
func (o Origin) uid(pod *corev1.Pod) (types.UID, error) {
	text, err := json.Marshal(pod)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00", o.Node, o.Source)
	h.Write(text)
	return types.UID(hex.EncodeToString(h.Sum(nil)[:16])), nil
}

func (o Origin) annotations(own map[string]string, uid types.UID) map[string]string {
	out := map[string]string{}
	for k, v := range own {
		out[k] = v
	}
	delete(out, corev1.MirrorPodAnnotationKey)
	delete(out, SeenAnnotation)
	out[HashAnnotation], out[SourceAnnotation] = string(uid), string(o.Source)
	return out
}

// tolerateAll keeps a pod on its node whatever taints that gets: nobody else could run it.
func tolerateAll(spec *corev1.PodSpec) {
	all := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	for _, t := range spec.Tolerations {
		if t == all {
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, all)
}
