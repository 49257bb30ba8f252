// SPDX-License-Identifier: Apache-2.0

package bookkeeping

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/controllers/loop"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

const (
	// Keep is how long the record of a pod that is gone is kept.
	Keep = 30 * 24 * time.Hour
	// Most is how many records of a namespace are kept; the oldest that are finished go.
	Most = 1000

	// The queue holds pods as namespace/name, and namespaces behind this prefix, which no namespace's name can begin
	// with.
	trimPrefix = "trim:"
	// byPod is the index of records by their pods' names.
	byPod = "pod"
)

// Records is what the controller does to records; *debugrun.Client.
type Records interface {
	ListWatch() cache.ListerWatcher
	UpdateStatus(ctx context.Context, run *debugrun.DebugRun) (*debugrun.DebugRun, error)
	Delete(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error
}

// Controller completes and trims records.
type Controller struct {
	client  kubernetes.Interface
	records Records
	log     *slog.Logger
	loop    *loop.Loop
	pods    corelisters.PodLister
	runs    cache.Indexer
	since   time.Time
	most    int
}

// New makes the controller; most is how many records a namespace may have. The caller starts the factory's informers.
func New(client kubernetes.Interface, records Records, factory informers.SharedInformerFactory, log *slog.Logger,
	most int) *Controller {
	c := &Controller{client: client, records: records, log: log, since: time.Now(), most: most}
	c.loop = loop.New("debugruns", log, c.sync)
	informer := factory.InformerFor(&debugrun.DebugRun{}, func(kubernetes.Interface,
		time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(records.ListWatch(), &debugrun.DebugRun{}, 0, cache.Indexers{
			cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
			byPod: func(obj any) ([]string, error) {
				return []string{podOf(obj.(*debugrun.DebugRun))}, nil
			},
		})
	})
	c.runs = informer.GetIndexer()
	pods := factory.Core().V1().Pods()
	c.pods = pods.Lister()
	c.loop.Watch(pods.Informer(), func(obj any) {
		if pod := obj.(*corev1.Pod); c.open(pod.Namespace + "/" + pod.Name) {
			c.loop.Add(pod.Namespace + "/" + pod.Name)
		}
	})
	c.loop.Watch(informer, func(obj any) {
		run := obj.(*debugrun.DebugRun)
		if run.Status.FinishedAt == nil {
			c.loop.Add(podOf(run))
			return
		}
		c.loop.Add(trimPrefix + run.Namespace)
	})
	return c
}

// Run works until ctx is done. It is called once.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

func podOf(run *debugrun.DebugRun) string { return run.Namespace + "/" + run.Spec.Pod.Name }

// of are the records by an index.
func (c *Controller) of(index, key string) ([]*debugrun.DebugRun, error) {
	found, err := c.runs.ByIndex(index, key)
	if err != nil {
		return nil, err
	}
	runs := make([]*debugrun.DebugRun, len(found))
	for i := range found {
		runs[i] = found[i].(*debugrun.DebugRun)
	}
	return runs, nil
}

// open reports whether a pod's name has a record that is not finished.
func (c *Controller) open(pod string) bool {
	runs, err := c.of(byPod, pod)
	if err != nil {
		return false
	}
	for _, r := range runs {
		if r.Status.FinishedAt == nil {
			return true
		}
	}
	return false
}

func (c *Controller) sync(ctx context.Context, name string) error {
	if namespace, ok := strings.CutPrefix(name, trimPrefix); ok {
		return c.trim(ctx, namespace)
	}
	namespace, pod, _ := strings.Cut(name, "/")
	return c.complete(ctx, namespace, pod)
}

// complete brings the records of a pod's name up to date.
func (c *Controller) complete(ctx context.Context, namespace, name string) error {
	runs, err := c.of(byPod, namespace+"/"+name)
	if err != nil {
		return err
	}
	var errs []error
	for _, run := range runs {
		if run.Status.FinishedAt != nil {
			continue
		}
		pod, err := c.pod(ctx, namespace, name, run)
		if err != nil {
			return err
		}
		status, news := statusOf(run, pod, c.since, time.Now())
		if !news {
			continue
		}
		run = run.DeepCopy()
		run.Status = status
		if _, err := c.records.UpdateStatus(ctx, run); err != nil && !apierrors.IsNotFound(err) &&
			!apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("record %s/%s: %w", namespace, run.Name, err))
		}
	}
	return errors.Join(errs...) // after a conflict the record itself comes again
}

// pod is the one that a record speaks of, or nil when it is gone: when the API server itself says so, since what is
// heard of pods and what is heard of records may be of different times.
func (c *Controller) pod(ctx context.Context, namespace, name string, run *debugrun.DebugRun) (*corev1.Pod, error) {
	if pod, err := c.pods.Pods(namespace).Get(name); err == nil && pod.UID == run.Spec.Pod.UID {
		return pod, nil
	}
	pod, err := c.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return pod, err
}

// trim deletes the records of a namespace that are too old or too many.
func (c *Controller) trim(ctx context.Context, namespace string) error {
	runs, err := c.of(cache.NamespaceIndex, namespace)
	if err != nil {
		return err
	}
	now := time.Now()
	drop, next := surplus(runs, func(r *debugrun.DebugRun) bool {
		pod, err := c.pods.Pods(namespace).Get(r.Spec.Pod.Name)
		return err != nil || pod.UID != r.Spec.Pod.UID
	}, Keep, c.most, now)
	for _, r := range drop {
		err := c.records.Delete(ctx, namespace, r.Name,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(r.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	if len(drop) > 0 {
		c.log.Info("deleting old debugging records", "namespace", namespace, "records", len(drop))
	}
	if next.IsZero() {
		return nil
	}
	return loop.Later{After: next.Sub(now), Why: "records of namespace " + namespace + " get too old"}
}
