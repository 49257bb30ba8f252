// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, Register} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// DC-03 IX-01: every parameter is read.
func TestRead(t *testing.T) {
	codec := runtime.NewParameterCodec(newScheme(t))
	for _, tc := range []struct {
		query string
		into  runtime.Object
		want  runtime.Object
	}{
		{"container=a&stdin=true&stdout=1&stderr=false&tty=&command=sh&command=-c", &Exec{},
			&Exec{Container: "a", Stdin: true, Stdout: true, TTY: true, Command: []string{"sh", "-c"}}},
		{"stdout=1&ephemeralContainerName=d&ephemeralContainerImage=i&ephemeralContainerTarget=t&ephemeralContainerProfile=p&ephemeralContainerTTL=1m&ephemeralContainerPullPolicy=Never&ephemeralContainerUnlessDead=true&ephemeralContainerUser=7&ephemeralContainerRequest=r",
			&Exec{}, &Exec{Stdout: true, DebugName: "d", DebugImage: "i", DebugTarget: "t", DebugProfile: "p",
				DebugTTL: "1m", DebugPullPolicy: "Never", UnlessDead: true, DebugUser: "7", DebugRequest: "r",
				Given: debugParams()}},
		{"image=i&writable=true&pullPolicy=Always&user=7:8&userOf=app", &Exec{},
			&Exec{Image: "i", Writable: true, PullPolicy: "Always", User: "7:8", UserOf: "app", Given: imageParams()}},
	} {
		q, _ := url.ParseQuery(tc.query)
		if err := codec.DecodeParameters(q, corev1.SchemeGroupVersion, tc.into); err != nil {
			t.Errorf("%s: %v", tc.query, err)
		} else if diff := cmp.Diff(tc.want, tc.into); diff != "" {
			t.Errorf("%s: %s", tc.query, diff)
		}
	}
}
