// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/api/nodenetwork"
)

// Pods reads what a wherry server serves a node of pods: where they are, and what policies know them by.
func Pods(client kubernetes.Interface) cache.ListerWatcher {
	return told(client, nodenetwork.PodsPath, func() runtime.Object { return &corev1.PodList{} })
}

// Nodes reads what a wherry server serves a node of the nodes: their addresses and their pods' networks.
func Nodes(client kubernetes.Interface) cache.ListerWatcher {
	return told(client, nodenetwork.NodesPath, func() runtime.Object { return &corev1.NodeList{} })
}

// lister reads one path. It is listed and then watched: the path has no stream that begins with what there is.
type lister struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is for reflectors, which would else ask for such a stream.
func (lister) IsWatchListSemanticsUnSupported() bool { return true }

func told(client kubernetes.Interface, path string, list func() runtime.Object) cache.ListerWatcher {
	api := client.CoreV1().RESTClient()
	return lister{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			out := list()
			err := api.Get().AbsPath(path).VersionedParams(&o, scheme.ParameterCodec).Do(ctx).Into(out)
			return out, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			return api.Get().AbsPath(path).VersionedParams(&o, scheme.ParameterCodec).Watch(ctx)
		},
	}}
}
