// SPDX-License-Identifier: Apache-2.0

package loop

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// OnlyNamed is a factory of informers that see, in all namespaces, the objects of one name only: a controller that
// keeps one object per namespace need not hold all of its kind in memory. Whoever makes it starts and shuts it down.
func OnlyNamed(client kubernetes.Interface, name string) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}))
}
