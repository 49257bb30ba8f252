// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/onwrite"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/table"
	"github.com/wherryproject/wherry/internal/api/usage"
)

// Serve serves metrics.k8s.io, which `kubectl top` asks. Nothing of it is stored.
func Serve(all registry.Served, stores registry.Stores, locate connect.NodeLocator) {
	use := newNodeUsage(locate)
	nodes := stores["nodes"]
	nodes.OnWrite.Add(onwrite.Calls{Deleted: func(obj runtime.Object) {
		if node, ok := obj.(*corev1.Node); ok {
			use.forget(node.Name)
		}
	}})
	all.Add(metricsv1beta1.SchemeGroupVersion, "pods", podMetricsREST{metricsREST{table.NewConvertor("PodMetrics"),
		stores["pods"], use}})
	all.Add(metricsv1beta1.SchemeGroupVersion, "nodes", nodeMetricsREST{metricsREST{table.NewConvertor("NodeMetrics"),
		nodes, use}})
}

// metricsOptions are what a list of metrics takes over for its list of the objects they are of. Figures are always of
// now.
func metricsOptions(o *metainternal.ListOptions) *metainternal.ListOptions {
	if o == nil {
		return &metainternal.ListOptions{}
	}
	return &metainternal.ListOptions{LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, Limit: o.Limit,
		Continue: o.Continue}
}

// warn warns the client which nodes are missing in the answer, and why.
func warn(ctx context.Context, errs map[string]error) {
	for _, name := range slices.Sorted(maps.Keys(errs)) {
		warning.AddWarning(ctx, "", fmt.Sprintf("no metrics for node %s: %v", name, errs[name]))
	}
}

// metricsREST is what both kinds of figures have: objects they are about, and who measures.
type metricsREST struct {
	rest.TableConvertor
	of  *registry.REST
	use *nodeUsage
}

// Destroy implements rest.Storage; the connection is that of the objects.
func (metricsREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r metricsREST) NamespaceScoped() bool { return r.of.Kind.Namespaced }

// GetSingularName implements rest.SingularNameProvider.
func (r metricsREST) GetSingularName() string { return r.of.Kind.Singular }

// about returns an object, and what is measured on its node, whose name nodeOf gives: "" for an object that is on none.
// Errors are the client's: NotFound, also of an object that is on no node, and ServiceUnavailable where a node does not
// answer.
func about[T any](ctx context.Context, r metricsREST, name string, nodeOf func(*T) string) (*T, usage.Rates, error) {
	obj, err := registry.Get[T](ctx, r.of, request.NamespaceValue(ctx), name)
	if apierrors.IsNotFound(err) {
		return nil, usage.Rates{}, r.notFound(name)
	} else if err != nil {
		return nil, usage.Rates{}, err
	}
	node := nodeOf(obj)
	if node == "" {
		return nil, usage.Rates{}, r.notFound(name)
	}
	rates, errs := r.use.of(ctx, []string{node})
	if err := errs[node]; err != nil {
		return nil, usage.Rates{}, apierrors.NewServiceUnavailable(err.Error())
	}
	return obj, rates[node], nil
}

func (r metricsREST) notFound(name string) error {
	return apierrors.NewNotFound(metricsv1beta1.Resource(r.of.Kind.Plural), name)
}

// podMetricsREST is pods of metrics.k8s.io: what the containers of running pods use.
type podMetricsREST struct{ metricsREST }

var (
	_ rest.Getter               = podMetricsREST{}
	_ rest.Lister               = podMetricsREST{}
	_ rest.Scoper               = podMetricsREST{}
	_ rest.SingularNameProvider = podMetricsREST{}
)

// New implements rest.Storage.
func (podMetricsREST) New() runtime.Object { return &metricsv1beta1.PodMetrics{} }

// NewList implements rest.Lister.
func (podMetricsREST) NewList() runtime.Object { return &metricsv1beta1.PodMetricsList{} }

// Get implements rest.Getter.
func (r podMetricsREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	pod, rates, err := about(ctx, r.metricsREST, name, func(p *corev1.Pod) string { return p.Spec.NodeName })
	if err != nil {
		return nil, err
	}
	if m, ok := podMetrics(pod, rates); ok {
		return m, nil
	}
	return nil, r.notFound(name)
}

// List implements rest.Lister. Pods that do not run, or whose node does not answer, are left out.
func (r podMetricsREST) List(ctx context.Context, options *metainternal.ListOptions) (runtime.Object, error) {
	list, err := r.of.List(r.of.Within(ctx, request.NamespaceValue(ctx)), metricsOptions(options))
	if err != nil {
		return nil, err
	}
	pods := list.(*corev1.PodList)
	nodes := map[string]bool{}
	for i := range pods.Items {
		if name := pods.Items[i].Spec.NodeName; name != "" {
			nodes[name] = true
		}
	}
	rates, errs := r.use.of(ctx, slices.Collect(maps.Keys(nodes)))
	warn(ctx, errs)
	out := &metricsv1beta1.PodMetricsList{Items: []metricsv1beta1.PodMetrics{}}
	out.Continue, out.RemainingItemCount = pods.Continue, pods.RemainingItemCount
	for i := range pods.Items {
		if m, ok := podMetrics(&pods.Items[i], rates[pods.Items[i].Spec.NodeName]); ok {
			out.Items = append(out.Items, *m)
		}
	}
	return out, nil
}

func podMetrics(pod *corev1.Pod, rates usage.Rates) (*metricsv1beta1.PodMetrics, bool) {
	containers := rates.Pods[pod.UID]
	if static, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror { // the node has another UID for it
		containers = rates.Pods[types.UID(static)]
	}
	if len(containers) == 0 {
		return nil, false
	}
	m := &metricsv1beta1.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels,
			CreationTimestamp: metav1.NewTime(rates.At)},
		Timestamp: metav1.NewTime(rates.At),
		Window:    metav1.Duration{Duration: rates.Window},
	}
	for _, c := range containers {
		m.Containers = append(m.Containers, metricsv1beta1.ContainerMetrics{Name: c.Name, Usage: c.Usage})
	}
	return m, true
}

// nodeMetricsREST is nodes of metrics.k8s.io: what each whole machine uses.
type nodeMetricsREST struct{ metricsREST }

var (
	_ rest.Getter               = nodeMetricsREST{}
	_ rest.Lister               = nodeMetricsREST{}
	_ rest.Scoper               = nodeMetricsREST{}
	_ rest.SingularNameProvider = nodeMetricsREST{}
)

// New implements rest.Storage.
func (nodeMetricsREST) New() runtime.Object { return &metricsv1beta1.NodeMetrics{} }

// NewList implements rest.Lister.
func (nodeMetricsREST) NewList() runtime.Object { return &metricsv1beta1.NodeMetricsList{} }

// Get implements rest.Getter.
func (r nodeMetricsREST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	node, rates, err := about(ctx, r.metricsREST, name, func(n *corev1.Node) string { return n.Name })
	if err != nil {
		return nil, err
	}
	if m, ok := nodeMetrics(node, rates); ok {
		return m, nil
	}
	return nil, r.notFound(name)
}

// List implements rest.Lister. Nodes that do not answer are left out.
func (r nodeMetricsREST) List(ctx context.Context, options *metainternal.ListOptions) (runtime.Object, error) {
	list, err := r.of.List(r.of.Within(ctx, ""), metricsOptions(options))
	if err != nil {
		return nil, err
	}
	nodes := list.(*corev1.NodeList)
	var names []string
	for i := range nodes.Items {
		names = append(names, nodes.Items[i].Name)
	}
	rates, errs := r.use.of(ctx, names)
	warn(ctx, errs)
	out := &metricsv1beta1.NodeMetricsList{Items: []metricsv1beta1.NodeMetrics{}}
	out.Continue, out.RemainingItemCount = nodes.Continue, nodes.RemainingItemCount
	for i := range nodes.Items {
		if m, ok := nodeMetrics(&nodes.Items[i], rates[nodes.Items[i].Name]); ok {
			out.Items = append(out.Items, *m)
		}
	}
	return out, nil
}

func nodeMetrics(node *corev1.Node, rates usage.Rates) (*metricsv1beta1.NodeMetrics, bool) {
	if rates.Node == nil {
		return nil, false
	}
	return &metricsv1beta1.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels,
			CreationTimestamp: metav1.NewTime(rates.At)},
		Timestamp: metav1.NewTime(rates.At),
		Window:    metav1.Duration{Duration: rates.Window},
		Usage:     rates.Node,
	}, true
}
