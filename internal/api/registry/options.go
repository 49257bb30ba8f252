// SPDX-License-Identifier: Apache-2.0

package registry

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdateOptions say what they are, as those of a request do: webhooks are shown them.
func UpdateOptions() *metav1.UpdateOptions {
	return &metav1.UpdateOptions{TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(),
		Kind: "UpdateOptions"}}
}
