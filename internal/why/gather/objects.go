// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wherryproject/wherry/internal/why"
)

// objects looks whether what a pod refers to is there.
func (g *gatherer) objects(ctx context.Context, pod *corev1.Pod) {
	type key struct{ kind, name string }
	seen := map[key]bool{}
	refs := why.References(pod)
	for _, name := range why.PullSecrets(pod) {
		refs = append(refs, why.Ref{Kind: "Secret", Name: name})
	}
	for _, ref := range refs {
		if seen[key{ref.Kind, ref.Name}] {
			continue
		}
		seen[key{ref.Kind, ref.Name}] = true
		o := why.Object{Kind: ref.Kind, Name: ref.Name}
		var err error
		right := ""
		switch ref.Kind {
		case "ConfigMap":
			var m *corev1.ConfigMap
			if m, err = g.client.CoreV1().ConfigMaps(g.namespace).Get(ctx, ref.Name, metav1.GetOptions{}); err == nil {
				o.Keys = slices.Sorted(maps.Keys(m.Data))
				o.Keys = append(o.Keys, slices.Sorted(maps.Keys(m.BinaryData))...)
				o.Managed = m.ManagedFields
			}
			right = "get configmaps"
		case "Secret":
			var s *corev1.Secret
			if s, err = g.client.CoreV1().Secrets(g.namespace).Get(ctx, ref.Name, metav1.GetOptions{}); err == nil {
				o.Keys, o.Managed = slices.Sorted(maps.Keys(s.Data)), s.ManagedFields
			}
			right = "get secrets"
		case "PersistentVolumeClaim":
			err, right = g.claim(ctx, &o), "get persistentvolumeclaims"
		}
		if apierrors.IsNotFound(err) {
			o.Missing = true
		} else if g.failed(err, ref.Kind+" "+ref.Name, right) {
			continue
		}
		g.facts.Objects = append(g.facts.Objects, o)
	}
}

// claim looks at a claim to a volume, and if it has none at the classes.
func (g *gatherer) claim(ctx context.Context, o *why.Object) error {
	claim, err := g.client.CoreV1().PersistentVolumeClaims(g.namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	o.Phase, o.Class, o.Managed = string(claim.Status.Phase), claim.Spec.StorageClassName, claim.ManagedFields
	if claim.Status.Phase == corev1.ClaimBound {
		return nil
	}
	g.events(ctx, claim.UID)
	classes, err := g.client.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if g.failed(err, "storage classes", "list storageclasses.storage.k8s.io") {
		return nil
	}
	o.Classes = []string{}
	for _, c := range classes.Items {
		text := c.Name
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			text += " (default)"
		}
		o.Classes = append(o.Classes, text)
		if o.Class != nil && c.Name == *o.Class && c.VolumeBindingMode != nil {
			o.Late = *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
		}
	}
	return nil
}

// services fetches those that the pod may have meant: of all namespaces if that is allowed.
func (g *gatherer) services(ctx context.Context) {
	list, err := g.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		list, err = g.client.CoreV1().Services(g.namespace).List(ctx, metav1.ListOptions{})
	}
	if g.failed(err, "services", "list services") {
		return
	}
	for i := range list.Items {
		o := &list.Items[i]
		s := why.Service{Namespace: o.Namespace, Name: o.Name, Ports: o.Spec.Ports, Selector: o.Spec.Selector}
		for _, ip := range o.Spec.ClusterIPs {
			if ip != corev1.ClusterIPNone {
				s.IPs = append(s.IPs, ip)
			}
		}
		if why.Reached(g.facts, s) {
			g.endpoints(ctx, &s)
		}
		g.facts.Services = append(g.facts.Services, s)
	}
}

// endpoints counts who answers for a Service.
func (g *gatherer) endpoints(ctx context.Context, s *why.Service) {
	slices, err := g.client.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name})
	if g.failed(err, "who answers for Service "+s.Name, "list endpointslices.discovery.k8s.io") {
		return
	}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				s.Ready++
			} else {
				s.Unready++
			}
		}
	}
	if len(s.Selector) > 0 {
		pods, err := g.client.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{
			LabelSelector: labels.SelectorFromSet(s.Selector).String()})
		if g.failed(err, "pods of Service "+s.Name, "list pods") {
			return
		}
		s.Chosen = len(pods.Items)
	}
	s.Known = true
}
