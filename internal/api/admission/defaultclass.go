// SPDX-License-Identifier: Apache-2.0

package admission

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// newestDefault is the newest of the classes that say that they are the default; nil if none does.
func newestDefault[T any](all []T, meta func(*T) (of *metav1.ObjectMeta, says bool)) (newest *T) {
	var best *metav1.ObjectMeta
	for i := range all {
		m, says := meta(&all[i])
		if says && (best == nil || best.CreationTimestamp.Before(&m.CreationTimestamp) ||
			best.CreationTimestamp.Equal(&m.CreationTimestamp) && m.Name < best.Name) {
			newest, best = &all[i], m
		}
	}
	return newest
}
