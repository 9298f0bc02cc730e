//! What a request gains because its agent may transfer, or was corrected: the
//! contract in its transfer tools, in its own earlier calls the arguments it
//! generated, and the reply that came for one that went back.

use super::{Circumstances, Decision};
use crate::engine::custody::agent::Recognised;
use crate::engine::custody::run::{Run, Transfer};
use crate::engine::handoff::inject::{self, Asked};
use crate::engine::policy::Contract;
use crate::engine::read::{Reading, Visible};
use crate::engine::view::{Arguments, Keep, Plan, Tool};
use crate::engine::wire;

/// What is asked of a request's agent.
#[derive(Debug)]
pub struct Ask {
    /// The contract in its transfer tools; none where they all declare one.
    pub asked: Option<Asked>,
    /// The arguments that it generated, for its calls in the list.
    pub arguments: Vec<Arguments>,
    /// The reply that the request goes on from, where the one that it names went back to its sender.
    pub previous: Option<String>,
}

impl Ask {
    /// The plan with what is asked in it.
    pub fn in_plan(&self, plan: &Plan) -> Plan {
        let tools = self.asked.iter().flat_map(|asked| &asked.tools);
        let parameters = tools.map(|tool| (tool.tool, tool.parameters.clone())).collect();
        let (arguments, previous) = (self.arguments.clone(), self.previous.clone());
        Plan { parameters, arguments, previous, ..plan.clone() }
    }
}

/// What to ask with this decision; none where nothing is to be asked.
pub(super) fn ask(reading: &Reading<'_>, decision: &Decision, at: Circumstances<'_>) -> Option<Ask> {
    let policy = at.policy;
    let previous = reading.view.server_state.previous.as_deref();
    let previous = previous.and_then(|id| decision.run.as_ref()?.replaced_by(id)).map(str::to_owned);
    let may = policy.contract >= Contract::Inject
        && decision.watch
        && !reading.offers.is_empty()
        && wire::can_hold(reading.view.dialect);
    if !may {
        return previous.map(|id| Ask { asked: None, arguments: Vec::new(), previous: Some(id) });
    }
    let arguments = decision.run.as_ref().map_or_else(Vec::new, |run| generated(reading, run, decision));
    let submits = reading.view.tools.iter().any(|tool| policy.is_submit(&tool.name));
    let asked = if submits {
        // The client has a way of its own to say it.
        None
    } else {
        let takes = |tool: &Tool<'_>| wire::takes_parameters(at.body, tool);
        inject::ask(&reading.view.tools, &reading.offers, &policy.naming, policy.fields, takes)
    };
    let gains = asked.is_some() || !arguments.is_empty() || previous.is_some();
    gains.then_some(Ask { asked, arguments, previous })
}

/// The arguments that the agent generated for the transfer calls in its list: without them it would learn
/// from its own empty calls.
fn generated(reading: &Reading<'_>, run: &Run, decision: &Decision) -> Vec<Arguments> {
    let Recognised::Known(agent) = run.recognise(&reading.print) else { return Vec::new() };
    let own: Vec<&Transfer> =
        run.transfers.iter().filter(|transfer| transfer.sender == Some(agent)).collect();
    let shown = |visible: &&Visible| match decision.keep(visible.item) {
        Keep::Drop => false,
        Keep::WithoutCalls(cut) => !cut.contains(&visible.call),
        Keep::Whole | Keep::Shortened(_) => true,
    };
    let visible: Vec<&Visible> = reading.transfers.iter().filter(shown).collect();
    let mut arguments = Vec::new();
    for transfer in &own {
        let Some(text) = &transfer.generated else { continue };
        let mut calls = visible.iter().filter(|visible| visible.mark == transfer.call);
        let alike = own.iter().filter(|other| other.call == transfer.call).count();
        // Ids repeat: where several calls look alike, none can be told to be the one.
        if let (Some(call), None, 1) = (calls.next(), calls.next(), alike) {
            arguments.push(Arguments { item: call.item, call: call.call, text: text.clone() });
        }
    }
    arguments
}
