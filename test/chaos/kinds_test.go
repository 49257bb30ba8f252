// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/test/e2e"
)

// kind is a kind of storm: what the server stands on, and what befalls that besides what dies in every storm.
type kind struct {
	name        string
	prepare     func(*testing.T, *e2e.World) e2e.ServerOptions
	misfortunes []func(*storm)
	outside     bool // pods are on the machine's network
}

// kinds gives each storm what it needs anew.
func kinds() []kind { return []kind{embedded(), external(), disk(), clock()} }

func embedded() kind {
	return kind{name: "embedded", prepare: func(*testing.T, *e2e.World) e2e.ServerOptions { return e2e.ServerOptions{} }}
}

// external is an etcd and a containerd of their own, which are killed, stand still and start again (RS-05).
func external() kind {
	var etcd *e2e.Etcd
	var containerd *e2e.Containerd
	return kind{
		name: "external", outside: true,
		prepare: func(t *testing.T, world *e2e.World) e2e.ServerOptions {
			etcd, containerd = e2e.StartEtcd(t), e2e.StartContainerd(t)
			containerd.Load(t, world)
			return e2e.ServerOptions{Args: etcd.Flags, Runtime: containerd}
		},
		misfortunes: []func(*storm){
			func(s *storm) {
				s.lose("kill etcd", func() error { etcd.Kill(); return nil }, func() error { etcd.Start(); return nil })
			},
			func(s *storm) { s.lose("stall etcd", etcd.Pause, etcd.Resume) },
			func(s *storm) {
				s.lose("kill containerd", func() error {
					s.blind.Store(true)
					s.note("kill-containerd")
					containerd.Kill()
					return nil
				}, func() error {
					containerd.Run(s.t)
					s.blind.Store(false)
					return nil
				})
			},
			func(s *storm) { s.lose("stall containerd", containerd.Pause, containerd.Resume) },
		},
	}
}

// lose takes something that the server needs away for a while, unless something else is away, and tells whether it did. The storm goes on
// meanwhile.
func (s *storm) lose(what string, away, back func() error) bool {
	if !s.outage.TryLock() {
		return false
	}
	s.did[what]++
	end := s.excuse.begin()
	if err := away(); err != nil {
		s.t.Fatal(err)
	}
	long := time.Duration(300+s.rand.IntN(4000)) * time.Millisecond
	s.aside.Go(func() {
		defer s.outage.Unlock()
		defer end()
		time.Sleep(long)
		if err := back(); err != nil {
			s.t.Error(err)
		}
	})
	return true
}

// disk is a data folder on a small disk, which is filled from outside and by a pod (RS-02).
func disk() kind {
	return kind{
		name: "disk",
		prepare: func(*testing.T, *e2e.World) e2e.ServerOptions {
			return e2e.ServerOptions{Disk: "1500m", Args: []string{"--eviction-pressure-transition-period", "1s"}}
		},
		misfortunes: []func(*storm){(*storm).fill, (*storm).fillByPod},
	}
}

// fill takes all that is free on the disk, for some seconds. Servers start meanwhile too.
func (s *storm) fill() {
	s.did["fill disk"]++
	file := filepath.Join(filepath.Dir(s.DataDir), fmt.Sprintf("fill-%d", s.did["fill disk"]))
	end := s.excuse.begin()
	long := time.Duration(500+s.rand.IntN(5000)) * time.Millisecond
	s.aside.Go(func() {
		defer end()
		if err := occupy(file); err != nil && !errors.Is(err, syscall.ENOSPC) {
			s.t.Errorf("fill the disk: %v", err)
		}
		time.Sleep(long)
		if err := os.Remove(file); err != nil {
			s.t.Error(err)
		}
	})
}

// occupy writes a file until no more fits.
func occupy(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	for zeros := make([]byte, 1<<20); ; {
		if _, err := f.Write(zeros); err != nil {
			return err
		}
	}
}

// fillByPod lets a pod do so. It is evicted, and others may be before it.
func (s *storm) fillByPod() {
	if s.World.NoBusy != nil {
		return
	}
	s.did["fill disk by a pod"]++
	pod := e2e.Never(fmt.Sprintf("filler-%d", s.did["fill disk by a pod"]), e2e.Sh("dd if=/dev/zero of=/v/f bs=1M; "+e2e.Idle))
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	end := s.excuse.begin()
	s.try("create the pod that fills the disk", func() error {
		_, err := s.TryCreate(pod)
		if apierrors.IsAlreadyExists(err) { // of an attempt whose answer was lost
			return nil
		}
		return err
	})
	name := pod.Name
	s.aside.Go(func() {
		defer end()
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(200 * time.Millisecond) { // a watch would break with each server
			p, err := s.ledger.client.CoreV1().Pods(s.Namespace).Get(s.Context(), name, metav1.GetOptions{})
			if err == nil && p.Status.Phase == corev1.PodFailed {
				break
			}
		}
	})
}

// clock is a server, with its shims, whose clock is put forward and back. Certificates and tokens are made for clocks that are an hour
// apart, so it is never more than an hour behind what it has been.
func clock() kind {
	var now *e2e.Clock
	var days, back time.Duration
	return kind{
		name: "clock",
		prepare: func(t *testing.T, world *e2e.World) e2e.ServerOptions {
			dir := t.TempDir()
			var err error
			if now, err = e2e.NewClock(dir); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = now.Close() })
			if world.Wherry, err = e2e.SteppedBuild(t.Context(), filepath.Join(dir, "build")); err != nil {
				t.Fatal(err)
			}
			return e2e.ServerOptions{Env: []string{now.Env()}, Apart: true}
		},
		misfortunes: []func(*storm){func(s *storm) {
			switch n := s.rand.IntN(5); {
			case n == 0:
				s.did["step clock a day forward"]++
				days += 24 * time.Hour
			case back == 0:
				s.did["step clock an hour back"]++
				back = time.Hour
			default:
				s.did["step clock an hour forward"]++
				back = 0
			}
			if err := now.Set(days - back); err != nil {
				s.t.Fatal(err)
			}
		}},
	}
}
