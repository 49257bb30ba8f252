// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/test/e2e"
	"github.com/wherryproject/wherry/test/images"
)

const (
	names   = 500 // Deployments that there may be
	clients = 8
	most    = 40 // pods that are wanted at a time
)

// soak is one run.
type soak struct {
	*e2e.Space
	t      *testing.T
	wanted atomic.Int64 // pods
	mu     sync.Mutex
	apps   [names]int // replicas, of those that are there; -1: not there
	busy   [names]bool
	did    map[string]int
}

// TestSoak proves WL-02, WL-04, WL-09, WL-13, PL-10 and RS-01 for a long time.
func TestSoak(t *testing.T) {
	text := os.Getenv("SOAK")
	if text == "" {
		t.Skip("it takes as long as SOAK says: make soak")
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SOAK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SOAK=%s SOAK_SEED=%d", long, seed)
	world, err := e2e.NewWorld(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world.Close() })
	srv, err := e2e.NewServer(t.Context(), world, e2e.ServerOptions{Args: []string{"--profiling"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, bad := range srv.Complaints() {
			t.Error(bad)
		}
		if err := srv.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s := &soak{Space: srv.Space(t), t: t, did: map[string]int{}}
	for i := range s.apps {
		s.apps[i] = -1
	}
	// A first round starts all that is started with the first object of a kind, and fills caches.
	s.stir(seed, min(long/4, time.Minute))
	s.clear()
	first := s.state()
	t.Logf("after a first round: %v", first)
	s.stir(seed+1, long)
	s.clear()
	s.same(first)
	t.Logf("the clients did %v", s.did)
}

// stir has the clients do things until the time is over.
func (s *soak) stir(seed uint64, long time.Duration) {
	s.t.Helper()
	until := time.Now().Add(long)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(c)))
			for time.Now().Before(until) {
				if err := s.act(rng); err != nil {
					s.t.Errorf("client %d: %v", c, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// act does one thing with an application that nobody else is busy with.
func (s *soak) act(rng *rand.Rand) error {
	s.mu.Lock()
	i := rng.IntN(names)
	for s.busy[i] {
		i = (i + 1) % names
	}
	s.busy[i] = true
	replicas := s.apps[i]
	s.mu.Unlock()
	what, now, err := s.change(rng, i, replicas)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[i], s.apps[i] = false, now
	s.did[what]++
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, name(i), err)
	}
	return nil
}

// change does something with an application of so many replicas, and says how many it has then.
func (s *soak) change(rng *rand.Rand, i, replicas int) (what string, now int, err error) {
	deployments := s.Client.AppsV1().Deployments(s.Namespace)
	switch n := rng.IntN(10); {
	case replicas < 0:
		now = s.room(rng.IntN(3))
		return "create", now, s.create(i, now)
	case n < 3:
		patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"rolled":"%d"}}}}}`, rng.Int())
		_, err = deployments.Patch(s.Context(), name(i), types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{})
		return "roll", replicas, err
	case n < 6:
		s.wanted.Add(-int64(replicas))
		now = s.room(rng.IntN(4))
		_, err = deployments.UpdateScale(s.Context(), name(i), &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name(i)},
			Spec:       autoscalingv1.ScaleSpec{Replicas: int32(now)}},
			metav1.UpdateOptions{})
		return "scale", now, err
	case n < 8:
		return "ask", replicas, s.ask(name(i))
	}
	policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground,
		metav1.DeletePropagationForeground}[rng.IntN(2)]
	err = errors.Join(deployments.Delete(s.Context(), name(i), metav1.DeleteOptions{PropagationPolicy: &policy}),
		s.Client.CoreV1().Services(s.Namespace).Delete(s.Context(), name(i), metav1.DeleteOptions{}))
	s.wanted.Add(-int64(replicas))
	return "delete", -1, err
}

func name(i int) string { return fmt.Sprintf("app-%d", i) }

// room takes so many pods, as far as there is room.
func (s *soak) room(n int) int {
	if s.wanted.Add(int64(n)) > most {
		s.wanted.Add(-int64(n))
		return 0
	}
	return n
}

// create makes a Deployment and its Service. One that is deleted in the foreground may still be there: it is waited
// for.
func (s *soak) create(i, replicas int) error {
	labels := map[string]string{"app": name(i)}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name(i)},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(1)),
					Containers: []corev1.Container{{Name: "c", Image: images.ToolRef, ImagePullPolicy: corev1.PullNever,
						Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}}}}}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Spec: corev1.ServiceSpec{Selector: labels,
		Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}}
	for {
		_, err := s.Client.AppsV1().Deployments(s.Namespace).Create(s.Context(), d, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			if err != nil {
				return err
			}
			break
		}
		time.Sleep(100 * time.Millisecond) // its pods have a second to end
	}
	_, err := s.Client.CoreV1().Services(s.Namespace).Create(s.Context(), service, metav1.CreateOptions{})
	return err
}
