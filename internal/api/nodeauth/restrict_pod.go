// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"fmt"
	"maps"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
)

// RestrictNewPod decides about a pod that a node makes: a mirror of one it runs anyway, which can use nothing of the
// cluster.
func RestrictNewPod(node string, pod *corev1.Pod) error {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return fmt.Errorf("pod does not have %q annotation, node %q can only create mirror pods",
			corev1.MirrorPodAnnotationKey, node)
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %q can only create pods with spec.nodeName set to itself", node)
	}
	for _, owner := range pod.OwnerReferences {
		if owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != node {
			return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
		}
	}
	for _, ref := range Refs(pod) {
		if ref.Kind != Pod {
			return fmt.Errorf("node %q can not create pods that reference %s %q", node, ref.Kind, ref.Name)
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources,
			func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			return fmt.Errorf("node %q can not create pods that reference a service account token", node)
		}
	}
	return nil
}

// RestrictPod decides about a write (update of the status, eviction, deletion) of a pod that is there.
func RestrictPod(node string, pod *corev1.Pod) error {
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %q can only change pods with spec.nodeName set to itself", node)
	}
	return nil
}

// RestrictPodStatus also keeps what others know the pod by.
func RestrictPodStatus(node string, pod, old *corev1.Pod) error {
	if err := RestrictPod(node, old); err != nil {
		return err
	}
	if !maps.Equal(pod.Labels, old.Labels) {
		return fmt.Errorf("node %q cannot update labels through pod status", node)
	}
	return nil
}

// RestrictToken decides about a token that a node asks for; pod is the one it shall be bound to, nil if it names none.
// drivers are the audiences that the drivers of its CSI volumes want; apiAudiences are those of this server, which a
// volume or a driver means that names no audience. A pod without a token gets none (KEP-4412).
func RestrictToken(node string, t *authenticationv1.TokenRequest, pod *corev1.Pod, drivers []string,
	apiAudiences ...string) error {
	ref := t.Spec.BoundObjectRef
	switch {
	case ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "":
		return fmt.Errorf("node requested token not bound to a pod")
	case ref.UID == "":
		return fmt.Errorf("node requested token with a pod binding without a uid")
	case pod == nil || pod.UID != ref.UID:
		return fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. "+
			"The object might have been deleted and then recreated", ref.UID)
	case pod.Spec.NodeName != node:
		return fmt.Errorf("node requested token bound to a pod scheduled on a different node")
	}
	may := append(audiences(pod), drivers...)
	if slices.Contains(may, "") { // this server
		may = append(may, apiAudiences...)
	}
	asked := t.Spec.Audiences
	if len(asked) == 0 {
		asked = []string{""}
	}
	for _, one := range asked {
		if !slices.Contains(may, one) {
			return fmt.Errorf("audience %q not found in pod spec volume, and no CSI driver of its volumes wants it",
				one)
		}
	}
	return nil
}

// audiences are those of the tokens that the pod's volumes ask for.
func audiences(pod *corev1.Pod) (all []string) {
	for i := range pod.Spec.Volumes {
		if p := pod.Spec.Volumes[i].Projected; p != nil {
			for _, s := range p.Sources {
				if s.ServiceAccountToken != nil {
					all = append(all, s.ServiceAccountToken.Audience)
				}
			}
		}
	}
	return all
}
