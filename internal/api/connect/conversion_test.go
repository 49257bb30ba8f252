// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func TestConversions(t *testing.T) {
	codec := runtime.NewParameterCodec(newScheme(t))
	for _, tc := range []struct {
		query string
		into  runtime.Object
		want  runtime.Object
	}{
		{"stdin=true&tty=true", &corev1.PodAttachOptions{}, &corev1.PodAttachOptions{Stdin: true, TTY: true}},
		{"ports=80,81", &corev1.PodPortForwardOptions{}, &corev1.PodPortForwardOptions{Ports: []int32{80, 81}}},
		{"path=/a/b", &corev1.PodProxyOptions{}, &corev1.PodProxyOptions{Path: "/a/b"}},
		{"path=/a/b", &corev1.NodeProxyOptions{}, &corev1.NodeProxyOptions{Path: "/a/b"}},
		{"path=/a/b", &corev1.ServiceProxyOptions{}, &corev1.ServiceProxyOptions{Path: "/a/b"}},
		{"tailLines=3&stream=Stdout", &corev1.PodLogOptions{}, &corev1.PodLogOptions{TailLines: ptr.To[int64](3), Stream: ptr.To("Stdout")}},
	} {
		q, _ := url.ParseQuery(tc.query)
		if err := codec.DecodeParameters(q, corev1.SchemeGroupVersion, tc.into); err != nil {
			t.Errorf("%s: %v", tc.query, err)
		} else if diff := cmp.Diff(tc.want, tc.into); diff != "" {
			t.Errorf("%s: %s", tc.query, diff)
		}
	}
}

// FuzzQuery: whatever a client sends, the reader answers options or an error.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"ports=1,2&tailLines=4", "sinceTime=2026-01-01T10:00:00Z", "stdin=yes&command=a", "limitBytes=-1&stream="} {
		f.Add(s)
	}
	codec := runtime.NewParameterCodec(newScheme(f))
	f.Fuzz(func(t *testing.T, s string) {
		q, err := url.ParseQuery(s)
		if err != nil {
			return
		}
		log := &corev1.PodLogOptions{}
		if codec.DecodeParameters(q, corev1.SchemeGroupVersion, log) == nil {
			ValidateLogOptions(log)
			logQuery(log)
		}
		for _, into := range []runtime.Object{&corev1.PodAttachOptions{}, &corev1.PodPortForwardOptions{}} {
			_ = codec.DecodeParameters(q, corev1.SchemeGroupVersion, into)
		}
	})
}
