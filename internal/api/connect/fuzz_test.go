// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FuzzOptions: whatever the query of a request that reaches into a pod is, it is read or refused, and what is read holds together.
func FuzzOptions(f *testing.F) {
	for _, q := range []string{
		"", "container=a&stdin=true&stdout=1&tty=&command=sh&command=-c", "stdin=maybe", "ports=80&ports=x", "path=/../../etc",
		"sinceSeconds=-1&tailLines=99999999999999999999&limitBytes=&follow=1", "sinceTime=2026-01-01T00:00:00Z&stream=Stdout", "sinceTime=noon",
		"ephemeralContainerName=d&ephemeralContainerImage=i&ephemeralContainerTTL=1h&stdin=1", "ephemeralContainerTTL=-1s&ephemeralContainerName=&ephemeralContainerImage=%00",
		"image=Bad%20Image&writable=true&pullPolicy=Sometimes", "image=a/b:c@sha256:0&command=", "%zz=1", "command=" + string(make([]byte, 4096)),
	} {
		f.Add(q)
	}
	codec := runtime.NewParameterCodec(newScheme(f))
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		log := &corev1.PodLogOptions{}
		for _, into := range []runtime.Object{
			log, &corev1.PodAttachOptions{}, &corev1.PodPortForwardOptions{}, &corev1.PodProxyOptions{}, &corev1.NodeProxyOptions{}, &corev1.ServiceProxyOptions{},
		} {
			if codec.DecodeParameters(query, corev1.SchemeGroupVersion, into) != nil {
				continue
			}
			if into.DeepCopyObject() == nil {
				t.Errorf("%T has no copy", into)
			}
		}
		ValidateLogOptions(log)
	})
}
