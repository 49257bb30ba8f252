// SPDX-License-Identifier: Apache-2.0

package refs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/leaktest"
)

func configMap(name, version string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version},
		Data: data}
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

// podWith mounts the ConfigMaps.
func podWith(uid types.UID, configMaps ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-" + string(uid), UID: uid}}
	for _, n := range configMaps {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: n, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: n}}}})
	}
	return pod
}

// open gives Sources whose Changed goes to the channel.
func open(t *testing.T, client *fake.Clientset, patience time.Duration) (*Sources, chan types.UID) {
	t.Helper()
	others := goleak.IgnoreCurrent() // of the API server of another test
	changed := make(chan types.UID, 100)
	s := New(Config{Client: client, Patience: patience, Changed: func(uid types.UID) { changed <- uid }})
	t.Cleanup(func() { s.Close(); leaktest.None(t, others) })
	return s, changed
}

// watching returns once n watches have been opened.
func watching(t *testing.T, client *fake.Clientset, n int) {
	t.Helper()
	for {
		opened := 0
		for _, a := range client.Actions() {
			if a.GetVerb() == "watch" {
				opened++
			}
		}
		if opened >= n {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("no watch was opened")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestNames proves PL-03, PL-05 and PL-06: everything a pod names is known beforehand.
func TestNames(t *testing.T) {
	ref := func(n string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: n} }
	pod := podWith("u", "volume")
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s-volume"}}},
		corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref("projected")}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: ref("s-projected")}}}}}})
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{ref("s-pull"), ref("")}
	pod.Spec.InitContainers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("init")}}}}}
	pod.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("s-env")}}}}}}
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("debug")}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("init")}}}}}}
	cms, secrets := Names(pod)
	if !slices.Equal(cms, []string{"debug", "init", "projected", "volume"}) ||
		!slices.Equal(secrets, []string{"s-env", "s-projected", "s-pull", "s-volume"}) {
		t.Error(cms, secrets)
	}
}

// TestFollow proves PL-05: an object is read once, then answered locally; changes reach the pods that name it and no
// others.
func TestFollow(t *testing.T) {
	client := fake.NewClientset(configMap("a", "", map[string]string{"k": "1"}))
	s, changed := open(t, client, time.Minute)
	s.Register(podWith("one", "a", "b"))
	s.Register(podWith("two", "b"))
	watching(t, client, 2)
	get := func(name string) string {
		cm, err := s.ConfigMap(t.Context(), "ns", name)
		if apierrors.IsNotFound(err) {
			return err.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
		return cm.Data["k"]
	}
	if got := get("a"); got != "1" {
		t.Error(got)
	}
	if got := get("b"); got != `configmap "b" not found` {
		t.Error(got)
	}
	before := len(client.Actions())
	get("a")
	get("b")
	if len(client.Actions()) != before {
		t.Error("known objects were asked for again:", client.Actions()[before:])
	}

	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	maps := client.CoreV1().ConfigMaps("ns")
	must(maps.Update(t.Context(), configMap("a", "", map[string]string{"k": "2"}), metav1.UpdateOptions{}))
	if uid := <-changed; uid != "one" || get("a") != "2" {
		t.Error(uid, get("a"))
	}
	must(maps.Create(t.Context(), configMap("b", "", map[string]string{"k": "b"}), metav1.CreateOptions{}))
	told := []types.UID{<-changed, <-changed}
	if slices.Sort(told); !slices.Equal(told, []types.UID{"one", "two"}) || get("b") != "b" {
		t.Error(told)
	}
	s.Unregister("one")
	if err := maps.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if uid := <-changed; uid != "two" || get("b") != `configmap "b" not found` {
		t.Error(uid, get("b"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.items) != 1 {
		t.Error("watches left:", len(s.items))
	}
}

// TestRegisterAgain proves PL-06: what a pod no longer names is let go, what it newly names is watched.
func TestRegisterAgain(t *testing.T) {
	s, _ := open(t, fake.NewClientset(), time.Minute)
	s.Register(podWith("one", "a", "b"))
	s.Register(podWith("one", "b", "c"))
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for k := range s.items {
		names = append(names, k.name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"b", "c"}) {
		t.Error(names)
	}
}

// TestAway proves SC-20 and PL-15: with the API server away what was known is given, what was not is an error that says
// why, and when it is back, who was turned away is told.
func TestAway(t *testing.T) {
	client := fake.NewClientset(configMap("a", "", nil), configMap("late", "", nil))
	var down atomic.Bool
	gone := func(clienttesting.Action) (bool, runtime.Object, error) {
		if down.Load() {
			return true, nil, errors.New("connection refused")
		}
		return false, nil, nil
	}
	client.PrependReactor("get", "configmaps", gone)
	client.PrependReactor("list", "configmaps", gone)
	s, changed := open(t, client, 5*time.Second)
	s.Register(podWith("one", "a"))
	if _, err := s.ConfigMap(t.Context(), "ns", "a"); err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	if _, err := s.ConfigMap(t.Context(), "ns", "a"); err != nil {
		t.Error("what was known is lost:", err)
	}
	s.Register(podWith("two", "late"))
	_, err := s.ConfigMap(t.Context(), "ns", "late")
	if err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(),
		`cannot read configmap "late": connection refused`) {
		t.Error(err)
	}
	down.Store(false)
	if uid := <-changed; uid != "two" { // the reflector tries again by itself
		t.Error(uid)
	}
	if _, err := s.ConfigMap(t.Context(), "ns", "late"); err != nil {
		t.Error(err)
	}
	// A caller that gives up first gets its own error.
	down.Store(true)
	s.Register(podWith("three", "never"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ConfigMap(ctx, "ns", "never"); err == nil || apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// TestOlder proves PL-05: a watch that begins with an older state than was read does not take us back; later it is
// believed.
func TestOlder(t *testing.T) {
	s := New(Config{Client: fake.NewClientset()})
	defer s.Close()
	k := key{configMapKind, "ns", "a"}
	it := &item{pods: map[types.UID]bool{}, cancel: func() {}, known: make(chan struct{})}
	s.items[k] = it
	s.learn(k, it, configMap("a", "10", nil), "")
	it.first = "10"
	st := &store{s, k, it}
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error { return st.Replace([]any{configMap("a", "5", nil)}, "7") }, "10"},
		{func() error { return st.Delete(configMap("a", "8", nil)) }, "10"},
		{func() error { return st.Replace(nil, "9") }, "10"},
		{func() error { return st.Update(configMap("other", "11", nil)) }, "10"},
		{func() error { return st.Update(configMap("a", "12", nil)) }, "12"},
		{func() error { return st.Delete(configMap("a", "13", nil)) }, ""},
		{func() error { return st.Replace([]any{configMap("a", "3", nil)}, "3") }, "3"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		got := ""
		if it.obj != nil {
			got = versionOf(it.obj)
		}
		if got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
}

// TestPullSecrets proves PL-03: the pod's, or else its account's; missing ones are named.
func TestPullSecrets(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "default"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "account"}}}
	s, _ := open(t, fake.NewClientset(secret("pod"), secret("account"), account), time.Minute)
	names := func(pod *corev1.Pod) string {
		found, missing, err := s.PullSecrets(t.Context(), pod)
		var out []string
		for _, f := range found {
			out = append(out, f.Name)
		}
		return fmt.Sprint(out, missing, err)
	}
	pod := podWith("one")
	if got := names(pod); got != "[account] [] <nil>" {
		t.Error(got)
	}
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pod"}, {Name: "gone"}}
	s.Register(pod)
	if got := names(pod); got != "[pod] [gone] <nil>" {
		t.Error(got)
	}
	other := podWith("two")
	other.Spec.ServiceAccountName = "nobody"
	if got := names(other); got != "[] [] <nil>" {
		t.Error(got)
	}
}

// TestToken proves PL-05: a token is bound to its pod, kept until 80 % of its life, renewed then, kept on while the API
// server does not give another, and an error once it is of no use.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		issued, down := 0, false
		var last *authenticationv1.TokenRequest
		client.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if down {
				return true, nil, errors.New("away")
			}
			issued++
			last = a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest)
			return true,
				&authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: fmt.Sprint("t",
					issued),
					ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Duration(*last.Spec.ExpirationSeconds) * time.Second))}}, nil
		})
		told := make(chan types.UID, 10)
		s := New(Config{Client: client, Changed: func(uid types.UID) { told <- uid }})
		pod := podWith("one")
		s.Register(pod)
		want := func(value string) {
			t.Helper()
			got, _, err := s.ServiceAccountToken(t.Context(), pod,
				&corev1.ServiceAccountTokenProjection{Audience: "vault", ExpirationSeconds: ptr.To[int64](1000)})
			if err != nil {
				got = err.Error()
			}
			if got != value {
				t.Errorf("after %d issued: got %q, want %q", issued, got, value)
			}
		}
		want("t1")
		if b := last.Spec.BoundObjectRef; b == nil || b.Kind != "Pod" || b.UID != "one" ||
			!slices.Equal(last.Spec.Audiences, []string{"vault"}) {
			t.Errorf("%+v", last.Spec)
		}
		time.Sleep(799 * time.Second)
		synctest.Wait()
		want("t1")
		if len(told) != 0 {
			t.Error("told too early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(told) != 1 || <-told != "one" {
			t.Error("told", len(told))
		}
		down = true
		want("t1")
		down = false
		want("t1") // not asked again at once
		time.Sleep(tokenRetry + time.Second)
		synctest.Wait()
		if len(told) != 1 {
			t.Error("told", len(told))
		}
		want("t2")
		down = true
		time.Sleep(1001 * time.Second)
		want("token of service account ns/default: away")
		down = false
		want("t3")
		s.Unregister("one")
		want("t4") // nothing is kept for a pod that is not registered
		want("t5")
		s.Close()
	})
}

// TestTokenClockSet: RS-05: when the clock is set forward beyond a token's end, or back before its beginning, the pod
// is told of it within a minute and gets another; before, it kept one that the API server refuses until as much time
// had passed as the clock was set by.
func TestTokenClockSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off time.Duration
		wall := func() time.Time { return time.Now().Round(0).Add(off) }
		client := fake.NewClientset()
		issued := 0
		client.PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
			issued++
			return true,
				&authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: fmt.Sprint("t",
					issued),
					ExpirationTimestamp: metav1.NewTime(wall().Add(time.Hour))}}, nil
		})
		told := make(chan types.UID, 10)
		s := New(Config{Client: client, Wall: wall, Changed: func(uid types.UID) { told <- uid }})
		defer s.Close()
		pod := podWith("one")
		s.Register(pod)
		want := func(value string) {
			t.Helper()
			if got, _, err := s.ServiceAccountToken(t.Context(), pod,
				&corev1.ServiceAccountTokenProjection{}); got != value || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, value)
			}
		}
		want("t1")
		for i, step := range []time.Duration{24 * time.Hour, -time.Hour} {
			off += step
			time.Sleep(lookAgain)
			synctest.Wait()
			if len(told) != i+1 {
				t.Errorf("the pod was told %d times after a step of %s", len(told), step)
			}
			want(fmt.Sprint("t", i+2))
		}
	})
}
