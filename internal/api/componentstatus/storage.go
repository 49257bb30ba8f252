// SPDX-License-Identifier: Apache-2.0

package componentstatus

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/api/table"
)

// Storage serves componentstatuses, which `kubectl get componentstatuses` asks: the parts of the control plane
// and how they are. Nothing of it is stored. Scheduler and controllers are parts of this process and end with it: where
// somebody answers, they run.
type Storage struct {
	rest.TableConvertor
	etcd func() error
}

var (
	_ rest.Storage              = Storage{}
	_ rest.Lister               = Storage{}
	_ rest.Getter               = Storage{}
	_ rest.Scoper               = Storage{}
	_ rest.SingularNameProvider = Storage{}
	_ rest.ShortNamesProvider   = Storage{}
)

func New(etcd func() error) Storage {
	return Storage{table.NewConvertor("ComponentStatus"), etcd}
}

// New implements rest.Storage.
func (Storage) New() runtime.Object { return &corev1.ComponentStatus{} }

// NewList implements rest.Lister.
func (Storage) NewList() runtime.Object { return &corev1.ComponentStatusList{} }

// Destroy implements rest.Storage.
func (Storage) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (Storage) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (Storage) GetSingularName() string { return "componentstatus" }

// ShortNames implements rest.ShortNamesProvider.
func (Storage) ShortNames() []string { return []string{"cs"} }

// List implements rest.Lister.
func (r Storage) List(_ context.Context, options *metainternal.ListOptions) (runtime.Object, error) {
	list := &corev1.ComponentStatusList{}
	for _, c := range r.all() {
		if options != nil && options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(c.Labels)) ||
			options != nil && options.FieldSelector != nil &&
				!options.FieldSelector.Matches(fields.Set{"metadata.name": c.Name}) {
			continue
		}
		list.Items = append(list.Items, c)
	}
	return list, nil
}

// Get implements rest.Getter.
func (r Storage) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	for _, c := range r.all() {
		if c.Name == name {
			return &c, nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("componentstatuses"), name)
}

func (r Storage) all() []corev1.ComponentStatus {
	healthy := corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: corev1.ConditionTrue, Message: "ok"}
	etcd := healthy
	if err := r.etcd(); err != nil {
		etcd.Status, etcd.Message, etcd.Error = corev1.ConditionFalse, "", err.Error()
	}
	component := func(name string, how corev1.ComponentCondition) corev1.ComponentStatus {
		return corev1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: name},
			Conditions: []corev1.ComponentCondition{how}}
	}
	return []corev1.ComponentStatus{component("controller-manager", healthy), component("scheduler", healthy),
		component("etcd-0", etcd)}
}
