// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// EC-20 IX-07: exec++ needs both the right to exec and the right to add ephemeral containers; image exec the right to exec and its
// own. Neither stands for another.
func TestDebugRights(t *testing.T) {
	ctx := request.WithNamespace(request.WithUser(context.Background(), &user.DefaultInfo{Name: "jane"}), "ns")
	image := func(p *Permit) error { return p.ImageExec(ctx, "p") }
	debug := func(p *Permit) error { return p.Session(ctx, "p") }
	const exec, ephemeral, own = "create pods/exec", "update pods/ephemeralcontainers", "create imageexecs.debug.wherry.dev"
	for _, test := range []struct {
		may  []string
		ask  func(*Permit) error
		want string // what the refusal says
	}{
		{nil, image, `cannot create resource "pods/exec" in API group "" in the namespace "ns"`},
		{[]string{exec, ephemeral}, image, `cannot create resource "imageexecs" in API group "debug.wherry.dev" in the namespace "ns"`},
		{[]string{own, ephemeral}, image, `cannot create resource "pods/exec"`},
		{[]string{exec, own}, image, ""},
		{nil, debug, `cannot create resource "pods/exec"`},
		{[]string{exec, own}, debug, `cannot update resource "pods/ephemeralcontainers" in API group "" in the namespace "ns"`},
		{[]string{ephemeral, own}, debug, `cannot create resource "pods/exec"`},
	} {
		p := &Permit{authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetUser().GetName() != "jane" || a.GetNamespace() != "ns" || a.GetName() != "p" || !a.IsResourceRequest() {
				t.Errorf("asked about %+v", a)
			}
			asked := a.GetVerb() + " " + a.GetResource()
			if a.GetSubresource() != "" {
				asked += "/" + a.GetSubresource()
			}
			if a.GetAPIGroup() != "" {
				asked += "." + a.GetAPIGroup()
			}
			if slices.Contains(test.may, asked) {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})}
		err := test.ask(p)
		if test.want == "" && err != nil || test.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "jane" `+test.want)) {
			t.Errorf("with %v: %v", test.may, err)
		}
	}
}
