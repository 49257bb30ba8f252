// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
)

// flight is one pull under way, shared by all that want the same image with the same credentials.
// It ends when the runtime is done or when the last of them has gone.
type flight struct {
	done   chan struct{} // closed when result and err are set
	cancel context.CancelFunc
	riders int // guarded by Puller.mu
	turn   *waiter

	result pulled
	err    error
}

type pulled struct {
	id    string
	size  uint64        // bytes, 0 if unknown
	took  time.Duration // of the pull itself, without waiting for a slot
	known string        // the id that the runtime gives when it is asked for the image; some answer a pull with another
	used  int           // which of the credentials the registry took; 0 also where there were none
}

// pull joins or starts the flight and waits for its end or the caller's.
func (p *Puller) pull(ctx context.Context, pod *corev1.Pod, ref imagename.Reference,
	auths []*runtimeapi.AuthConfig) (pulled, error) {
	key := flightKey(ref, auths)
	p.mu.Lock()
	f := p.flights[key]
	if f == nil {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight{done: make(chan struct{}), cancel: cancel, turn: newWaiter()}
		p.flights[key] = f
		go p.fly(own, f, key, pod, ref, auths)
	}
	f.riders++
	p.mu.Unlock()
	p.turns.join(f.turn, turn{pod.Namespace, ref.Registry})

	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.riders--; f.riders == 0 {
		f.cancel()
		p.land(key, f) // who comes now must not join a pull that is being cancelled
	}
	return pulled{}, ctx.Err()
}

// land takes f out of the list, unless another has taken its place. p.mu is held.
func (p *Puller) land(key string, f *flight) {
	if p.flights[key] == f {
		delete(p.flights, key)
	}
}

func (p *Puller) fly(ctx context.Context, f *flight, key string, pod *corev1.Pod, ref imagename.Reference,
	auths []*runtimeapi.AuthConfig) {
	defer func() {
		p.mu.Lock()
		p.land(key, f)
		p.mu.Unlock()
		f.cancel()
		close(f.done)
	}()
	over, err := p.turns.wait(ctx, f.turn)
	if err != nil {
		f.err = err
		return
	}
	defer over()
	begin := time.Now()
	f.result.id, f.result.used, f.err = p.try(ctx, pod, ref, auths)
	f.result.took = time.Since(begin)
	if f.err == nil {
		// An image whose size cannot be had is an image all the same.
		f.result.known, f.result.size, _ = p.inspect(ctx, ref)
		if f.result.known == "" {
			f.result.known = f.result.id
		}
	}
}

// try is Fetch for a pod.
func (p *Puller) try(ctx context.Context, pod *corev1.Pod, ref imagename.Reference,
	auths []*runtimeapi.AuthConfig) (string, int, error) {
	return fetch(ctx, p.cfg.Images, &runtimeapi.PullImageRequest{Image: spec(ref), SandboxConfig: sandboxOf(pod)}, ref,
		auths)
}

// Fetch pulls with one credential after the other until one does it; without any, anonymously. The error is an *Error,
// the last one's: the credentials tried first are the most specific, and the reasons are mostly the same.
func Fetch(ctx context.Context, images runtimeapi.ImageServiceClient, req *runtimeapi.PullImageRequest,
	ref imagename.Reference, auths []*runtimeapi.AuthConfig) (string, error) {
	id, _, err := fetch(ctx, images, req, ref, auths)
	return id, err
}

// fetch is Fetch, and returns which of the credentials were accepted.
func fetch(ctx context.Context, images runtimeapi.ImageServiceClient, req *runtimeapi.PullImageRequest,
	ref imagename.Reference, auths []*runtimeapi.AuthConfig) (id string, used int, err error) {
	if len(auths) == 0 {
		auths = []*runtimeapi.AuthConfig{nil}
	}
	var last *Error
	for i, auth := range auths {
		req.Auth = auth
		r, err := images.PullImage(ctx, req)
		if err == nil {
			return r.GetImageRef(), i, nil
		}
		last = explain(ref, auth != nil, err)
		if ctx.Err() != nil || last.unreachable() {
			break
		}
	}
	return "", 0, last
}

// sandboxOf lets the runtime know for which pod it pulls; some choose storage or account by it.
func sandboxOf(pod *corev1.Pod) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID)},
		Labels: map[string]string{
			"io.kubernetes.pod.name": pod.Name, "io.kubernetes.pod.namespace": pod.Namespace,
			"io.kubernetes.pod.uid": string(pod.UID),
		},
		Annotations: pod.Annotations,
	}
}

// flightKey keeps pulls with different credentials apart: being let in is each pod's own affair.
func flightKey(ref imagename.Reference, auths []*runtimeapi.AuthConfig) string {
	h := sha256.New()
	for _, a := range auths {
		for _, s := range []string{a.Username, a.Password, a.IdentityToken, a.RegistryToken} {
			_, _ = io.WriteString(h, fmt.Sprintf("%d:%s", len(s), s)) // a hash never fails
		}
	}
	return ref.Full + " " + hex.EncodeToString(h.Sum(nil))
}
