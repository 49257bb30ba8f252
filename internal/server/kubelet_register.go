// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"github.com/wherryproject/wherry/internal/node"
)

// registration reads with what labels and taints the node is registered (PL-36). (Pure.)
func (k KubeletOptions) registration() (out node.Registration, err error) {
	if out.Labels, err = parseNodeLabels(k.NodeLabels); err != nil {
		return out, fmt.Errorf("--node-labels: %w", err)
	}
	if out.Taints, err = parseTaints(k.RegisterWithTaints); err != nil {
		return out, fmt.Errorf("--register-with-taints: %w", err)
	}
	return out, nil
}

// parseNodeLabels reads KEY=VALUE, or KEY for the empty value. Of Kubernetes' own labels it takes those that a node may
// give itself: the others say what a node is trusted with, and API servers refuse them (NodeRestriction).
func parseNodeLabels(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, one := range list {
		key, value, _ := strings.Cut(strings.TrimSpace(one), "=")
		if msgs := validation.IsQualifiedName(key); len(msgs) > 0 {
			return nil, fmt.Errorf("%q: %q is not a label's name: %s", one, key, strings.Join(msgs, "; "))
		}
		if msgs := validation.IsValidLabelValue(value); len(msgs) > 0 {
			return nil, fmt.Errorf("%q: %q is not a label's value: %s", one, value, strings.Join(msgs, "; "))
		}
		if kubernetesLabel(key) && !kubeletapis.IsKubeletLabel(key) {
			return nil, fmt.Errorf("%s is not a label that a node may give itself: those of kubernetes.io and k8s.io "+
				"are in %s, or one of %s; set others with kubectl label node", key,
				strings.Join(kubeletapis.KubeletLabelNamespaces(), " or "),
				strings.Join(kubeletapis.KubeletLabels(), ", "))
		}
		out[key] = value
	}
	return out, nil
}

// kubernetesLabel reports whether a label is in one of Kubernetes' namespaces.
func kubernetesLabel(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	return qualified && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(parent string) bool {
		return domain == parent || strings.HasSuffix(domain, "."+parent)
	})
}

// parseTaints reads KEY=VALUE:EFFECT, or KEY:EFFECT.
func parseTaints(list []string) (out []corev1.Taint, err error) {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
		corev1.TaintEffectNoExecute}
	for _, one := range list {
		what, effect, _ := strings.Cut(strings.TrimSpace(one), ":")
		key, value, _ := strings.Cut(what, "=")
		t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		if msgs := validation.IsQualifiedName(key); len(msgs) > 0 {
			return nil, fmt.Errorf("%q: %q is not a taint's key: %s", one, key, strings.Join(msgs, "; "))
		}
		if msgs := validation.IsValidLabelValue(value); len(msgs) > 0 {
			return nil, fmt.Errorf("%q: %q is not a taint's value: %s", one, value, strings.Join(msgs, "; "))
		}
		if !slices.Contains(effects, t.Effect) {
			return nil, fmt.Errorf("%q: the effect is %q and must be one of %q, as in dedicated=gpu:NoSchedule", one,
				effect, effects)
		}
		if slices.ContainsFunc(out, func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
			return nil, fmt.Errorf("%q: there is a taint %s with the effect %s already", one, key, effect)
		}
		out = append(out, t)
	}
	return out, nil
}
