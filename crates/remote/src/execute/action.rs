//! A command as an action: its input tree, its messages, and the blobs that the server must have.

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use prost::Message;
use warpcc_cache::Digest;
use warpcc_cache::command::Command;

use super::tree::{Leaf, Tree};
use crate::backend::UploadSource;
use crate::grpc::to_wire;

/// An action with everything that it needs.
pub struct Prepared {
    /// The digest of the action.
    pub action: Digest,
    /// Everything that the server must have.
    pub blobs: Vec<(Digest, UploadSource)>,
}

/// Packs `command` for workers with `properties`. Returns `None` if its input tree is invalid.
pub fn prepare(command: &Command, properties: &[(String, String)]) -> Option<Prepared> {
    let leaves: Vec<Leaf> = command
        .inputs
        .iter()
        .map(|input| Leaf {
            path: input.path.clone(),
            digest: input.digest,
            executable: input.executable,
        })
        .collect();
    let tree = Tree::new(&leaves)?;
    let platform = platform(properties);
    let message = message_of(command, platform.clone());
    let action = re::Action {
        command_digest: Some(to_wire(&Digest::of_bytes(&message.encode_to_vec()))),
        input_root_digest: Some(to_wire(&tree.root)),
        platform,
        ..re::Action::default()
    };
    let mut blobs: Vec<(Digest, UploadSource)> = tree
        .folders
        .into_iter()
        .map(|(digest, bytes)| (digest, UploadSource::Bytes(bytes)))
        .collect();
    for bytes in [message.encode_to_vec(), action.encode_to_vec()] {
        blobs.push((Digest::of_bytes(&bytes), UploadSource::Bytes(bytes)));
    }
    blobs.extend(command.inputs.iter().map(|input| {
        let source = UploadSource::File(input.file.clone());
        (input.digest, source)
    }));
    blobs.sort_by_key(|(digest, _)| *digest);
    blobs.dedup_by_key(|(digest, _)| *digest);
    Some(Prepared {
        action: Digest::of_bytes(&action.encode_to_vec()),
        blobs,
    })
}

fn platform(properties: &[(String, String)]) -> Option<re::Platform> {
    let mut properties: Vec<_> = properties
        .iter()
        .map(|(name, value)| re::platform::Property {
            name: name.clone(),
            value: value.clone(),
        })
        .collect();
    properties.sort_by(|a, b| (&a.name, &a.value).cmp(&(&b.name, &b.value)));
    (!properties.is_empty()).then_some(re::Platform { properties })
}

fn message_of(command: &Command, platform: Option<re::Platform>) -> re::Command {
    let mut environment: Vec<_> = command
        .environment
        .iter()
        .map(|(name, value)| re::command::EnvironmentVariable {
            name: name.clone(),
            value: value.clone(),
        })
        .collect();
    environment.sort_by(|a, b| a.name.cmp(&b.name));
    let mut output_paths = command.outputs.clone();
    output_paths.sort();
    #[expect(
        deprecated,
        reason = "servers of API 2.1 and before look for the platform here"
    )]
    re::Command {
        arguments: command.arguments.clone(),
        environment_variables: environment,
        output_paths,
        platform,
        ..re::Command::default()
    }
}
