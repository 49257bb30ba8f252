// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/options"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// A request that leaves something out says afterwards what is going to be done; what it says is kept. Proves DA-06.
func TestComplete(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(1000))},
		Containers: []corev1.Container{{Name: "main"}, {Name: "root", SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To(int64(0))}},
			{Name: "app", SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To(int64(7)), RunAsGroup: ptr.To(int64(8))}}}}}
	limits := options.Limits{TTL: 30 * time.Minute, Memory: 64 << 20, CPUs: 0.5}
	bounds := options.Bounds{TTL: "30m0s", Memory: "64Mi", CPUs: "500m"}
	shell := func(o options.Shell) options.Shell { o.Complete(pod, limits); return o }
	for what, c := range map[string]struct{ got, want options.Shell }{
		"nothing said": {shell(options.Shell{}), options.Shell{Bounds: bounds, Container: "main", Image: "wherry.dev/toolbox", Profile: "general"}},
		"all said": {shell(options.Shell{Bounds: options.Bounds{TTL: "1s", Memory: "x", CPUs: "2"}, Container: "app", Image: "a", Profile: "baseline", User: "5"}),
			options.Shell{Bounds: options.Bounds{TTL: "1s", Memory: "x", CPUs: "2"}, Container: "app", Image: "a", Profile: "baseline", User: "5"}},
	} {
		if c.got.Bounds != c.want.Bounds || c.got.Container != c.want.Container || c.got.Image != c.want.Image || c.got.Profile != c.want.Profile || c.got.User != c.want.User {
			t.Errorf("%s: %+v, want %+v", what, c.got, c.want)
		}
	}
	for container, user := range map[string]string{"main": "1000:1000", "root": "65534:65534", "app": "7:8", "none": "1000:1000"} {
		if got := shell(options.Shell{Profile: "restricted", Container: container}); got.User != user {
			t.Errorf("restricted beside %s: as %s, want %s", container, got.User, user)
		}
	}
	files, exec := options.Files{}, options.Exec{Image: "a"}
	files.Complete(pod, limits)
	exec.Complete(pod, limits)
	if files.Container != "main" || files.Op != wire.OpPack || files.Bounds != bounds || exec.Container != "" || exec.Bounds != bounds {
		t.Errorf("%+v, %+v", files, exec)
	}
}
