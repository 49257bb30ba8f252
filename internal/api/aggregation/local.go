// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"

	"github.com/wherryproject/wherry/internal/api/upstream"
)

const (
	// managedLabel says who made an APIService: onStart, of the server's own kinds; always, of custom resources.
	managedLabel = "kube-aggregator.kubernetes.io/automanaged"
	onStart      = "onstart"
	always       = "true"

	customGroupPriority, customVersionPriority = 1000, 100
)

// Local is a group and version that this server answers for itself.
type Local struct {
	GV            schema.GroupVersion
	GroupPriority int32
}

func nameOf(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

func localService(gv schema.GroupVersion, managed string, group, version int32) *apiregistration.APIService {
	return &apiregistration.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(gv), Labels: map[string]string{managedLabel: managed}},
		Spec: apiregistration.APIServiceSpec{Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: group,
			VersionPriority: version},
	}
}

// Bootstrap makes the APIServices of the server's own groups. One that is there stays as it is: it may have been given
// to a Service.
func (a *Aggregator) Bootstrap(ctx context.Context) error {
	var making sync.WaitGroup
	all := a.locals()
	errs := make([]error, len(all))
	for i, s := range all {
		making.Go(func() { errs[i] = a.ensure(ctx, s) })
	}
	making.Wait()
	return errors.Join(errs...)
}

// locals are the APIServices of the server's own groups.
func (a *Aggregator) locals() (all []*apiregistration.APIService) {
	versions := map[string]int32{}
	for _, l := range a.o.Local {
		versions[l.GV.Group]++
		version := 16 - versions[l.GV.Group] // the preferred one comes first
		all = append(all, localService(l.GV, onStart, l.GroupPriority, version))
	}
	return all
}

// wanted is the APIService of this name that this server makes itself; nil: it makes none.
func (a *Aggregator) wanted(name string) *apiregistration.APIService {
	for _, s := range a.locals() {
		if s.Name == name {
			return s
		}
	}
	version, group, _ := strings.Cut(name, ".")
	a.custom.mu.Lock()
	defer a.custom.mu.Unlock()
	if !slices.Contains(a.custom.groups[group], version) {
		return nil
	}
	gv := schema.GroupVersion{Group: group, Version: version}
	return localService(gv, always, customGroupPriority, customVersionPriority)
}

// serves reports whether this server answers for a group where nobody else does.
func (a *Aggregator) serves(group string) bool {
	a.custom.mu.Lock()
	defer a.custom.mu.Unlock()
	return len(a.custom.groups[group]) > 0 ||
		slices.ContainsFunc(a.o.Local, func(l Local) bool { return l.GV.Group == group })
}

// deleted makes one again at once that somebody has deleted: the group is served all the same, and one that had been
// given to a Service is this server's again.
func (a *Aggregator) deleted(obj runtime.Object) {
	s, ok := obj.(*apiregistration.APIService)
	if !ok {
		return
	}
	if again := a.wanted(s.Name); again != nil {
		if err := a.ensure(a.context, again); err != nil && a.context.Err() == nil {
			a.o.Log.Error("an APIService that was deleted comes back only when the server starts again",
				"name", s.Name, "err", err)
		}
	}
}

func (a *Aggregator) ensure(ctx context.Context, service *apiregistration.APIService) error {
	return a.o.Stores.Ensure(ctx, a.o.Schemes, upstream.APIServices, "", service)
}

// custom are the groups of custom resources, whose APIServices come and go with them.
type custom struct {
	mu      sync.Mutex
	groups  map[string][]string // versions that are to be there; none: the group is gone
	due     []string            // groups whose APIServices may not be so yet
	running bool
}

// Custom sets which versions of a group custom resources define now. It returns at once.
func (a *Aggregator) Custom(group string, versions []string) {
	c := &a.custom
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups == nil {
		c.groups = map[string][]string{}
	}
	c.groups[group] = versions
	if !slices.Contains(c.due, group) { // Custom is called for each of its definitions
		c.due = append(c.due, group)
	}
	if !c.running && a.context.Err() == nil {
		c.running = true
		a.going.Go(a.followCustom)
	}
}

func (a *Aggregator) followCustom() {
	c := &a.custom
	for {
		c.mu.Lock()
		if len(c.due) == 0 || a.context.Err() != nil {
			c.running = false
			c.mu.Unlock()
			return
		}
		group := c.due[0]
		versions := c.groups[group]
		c.due = c.due[1:]
		if len(versions) == 0 {
			delete(c.groups, group)
		}
		c.mu.Unlock()
		if err := a.reconcile(a.context, group, versions); err != nil && a.context.Err() == nil {
			a.o.Log.Error("cannot make the APIServices of custom resources", "group", group, "err", err)
		}
	}
}

// reconcile makes the APIServices of one group of custom resources what they should be.
func (a *Aggregator) reconcile(ctx context.Context, group string, versions []string) error {
	var errs []error
	for _, version := range versions {
		gv := schema.GroupVersion{Group: group, Version: version}
		errs = append(errs, a.ensure(ctx, localService(gv, always, customGroupPriority, customVersionPriority)))
	}
	return errors.Join(append(errs, a.drop(ctx, func(s *apiregistration.APIService) bool {
		return s.Spec.Group == group && a.wanted(s.Name) == nil
	}))...)
}

// Prune deletes the APIServices of custom resources that went while the server was down. Custom has been called for
// those that are there.
func (a *Aggregator) Prune(ctx context.Context) {
	err := a.drop(ctx, func(s *apiregistration.APIService) bool { return a.wanted(s.Name) == nil })
	if err != nil && ctx.Err() == nil {
		a.o.Log.Warn("APIServices of custom resources that are gone may still be listed", "err", err)
	}
}

// drop deletes those APIServices of custom resources that gone picks.
func (a *Aggregator) drop(ctx context.Context, gone func(*apiregistration.APIService) bool) error {
	all, err := a.list(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for i := range all {
		s := &all[i]
		if s.Labels[managedLabel] != always || s.Spec.Service != nil || !gone(s) {
			continue
		}
		store := a.o.Stores[upstream.APIServices]
		_, _, err := store.Delete(store.Within(ctx, ""), s.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete APIService %s: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}

// list reads all APIServices.
func (a *Aggregator) list(ctx context.Context) ([]apiregistration.APIService, error) {
	store := a.o.Stores[upstream.APIServices]
	list, err := store.List(store.Within(ctx, ""), &metainternal.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the APIServices: %w", err)
	}
	services, ok := list.(*apiregistration.APIServiceList)
	if !ok {
		return nil, fmt.Errorf("the store returned a %T for the APIServices", list)
	}
	return services.Items, nil
}
