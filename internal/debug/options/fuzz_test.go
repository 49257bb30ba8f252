// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FuzzOptions: whatever the query of a request that enters a pod is, it is read or refused, and what is read holds
// together.
func FuzzOptions(f *testing.F) {
	for _, q := range []string{
		"", "container=a&stdin=true&stdout=1&tty=&command=sh&command=-c", "stdin=maybe", "ports=80&ports=x",
		"path=/../../etc", "sinceSeconds=-1&tailLines=99999999999999999999&limitBytes=&follow=1",
		"sinceTime=2026-01-01T00:00:00Z&stream=Stdout", "sinceTime=noon",
		"ephemeralContainerName=d&ephemeralContainerImage=i&ephemeralContainerTTL=1h&stdin=1",
		"ephemeralContainerTTL=-1s&ephemeralContainerName=&ephemeralContainerImage=%00",
		"image=Bad%20Image&writable=true&pullPolicy=Sometimes", "image=a/b:c@sha256:0&command=", "%zz=1",
		"command=" + string(make([]byte, 4096)),
	} {
		f.Add(q)
	}
	codec := runtime.NewParameterCodec(newScheme(f))
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		exec := &Exec{}
		if codec.DecodeParameters(query, corev1.SchemeGroupVersion, exec) == nil && exec.DeepCopyObject() == nil {
			t.Error("no copy")
		}
		if s, err := exec.Session(); err == nil && (s.Name == "" || s.Image == "" || s.TTL < 0) {
			t.Errorf("a session is taken for whole: %+v", s)
		}
		if run, err := exec.ImageRun(); err == nil && run.Image == "" {
			t.Errorf("an image exec without an image: %+v", run)
		}
	})
}
