//! Every promise of the store, on every database.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what could not be")]

mod clocks;
mod commits;
mod database;
mod encrypted;
mod groups;
mod labels;
mod opening;
mod overload;
mod postgres_only;
mod races;
mod reads;
mod seals;
#[path = "../support/postgres.rs"]
mod server;
mod sharing;
mod sqlite_only;
mod walks;

use database::TestDatabase;

/// Each claim, once on each database.
macro_rules! promises {
    ($($file:ident: { $($claim:ident,)* })*) => {
        mod on_sqlite {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    super::$file::$claim(super::TestDatabase::sqlite()).await;
                }
            )*)*
        }

        mod on_postgres {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    super::$file::$claim(super::TestDatabase::postgres().await).await;
                }
            )*)*
        }
    };
}

promises! {
    commits: {
        what_was_committed_is_read_back_in_every_column,
        what_was_committed_is_there_when_the_store_is_opened_again,
        a_change_of_many_rows_and_large_bodies_is_kept,
        of_a_change_that_is_refused_nothing_is_kept,
        a_failure_in_the_middle_leaves_no_trace_and_quotes_no_content,
        a_change_that_fails_or_is_refused_harms_no_other_in_its_group,
        a_guard_holds_only_for_the_row_as_it_was_read,
        a_replacement_needs_the_row_as_it_was_read,
        a_replacement_moves_whatever_the_row_is_found_by,
        an_id_is_given_once,
        an_alias_is_given_once,
        a_row_that_was_removed_is_gone_and_its_names_are_free,
        what_no_database_could_keep_is_refused,
    }
    groups: {
        what_an_earlier_change_replaced_or_removed_is_relied_on_by_none_after_it,
        of_changes_of_one_row_that_wait_together_the_first_wins,
        of_a_refused_change_nothing_stands_in_the_way_of_those_after_it,
    }
    clocks: {
        a_change_is_refused_from_its_deadline_on_by_the_databases_clock,
        a_gateway_whose_clock_is_off_is_refused_either_way,
        the_store_tells_the_databases_time,
    }
    races: {
        of_twenty_racing_replacements_exactly_one_wins,
        of_twenty_racing_removals_exactly_one_wins,
        of_twenty_racing_inserts_exactly_one_wins,
        of_twenty_racing_claims_to_an_alias_exactly_one_wins,
        of_two_changes_that_rely_on_what_the_other_replaces_only_one_succeeds,
        changes_that_lock_the_same_rows_in_any_order_all_get_through,
    }
    reads: {
        lists_come_in_the_order_of_bytes,
        pages_of_any_list_make_up_the_whole,
        lists_by_due_moment_stop_at_the_moment,
        no_list_is_longer_than_the_bound,
        an_empty_owner_or_state_belongs_to_no_list,
        the_last_of_an_owner_is_the_last_in_order,
        rows_are_found_by_alias_and_many_at_once,
        names_that_cannot_be_are_not_found,
        a_list_that_no_index_serves_is_refused,
        lists_of_the_latest_go_backwards_and_page,
        an_owners_rows_are_listed_by_moment_and_page,
    }
    labels: {
        lists_by_a_label_are_in_order_either_way_and_page,
        a_row_is_found_whole_with_the_moment_of_its_label,
        labels_come_and_go_with_their_change_or_not_at_all,
        a_label_without_its_row_takes_no_place_on_a_page,
        labels_are_told_whole_and_in_order,
        rows_are_found_by_the_beginning_of_their_alias,
        where_there_are_no_labels_none_is_looked_for,
    }
    walks: {
        a_walk_comes_by_every_row_and_label_in_order,
        a_walk_sees_one_moment_whatever_is_committed_meanwhile,
    }
    seals: {
        a_row_edited_in_any_column_is_unsealed,
        rows_that_were_swapped_are_unsealed,
        a_row_put_into_another_table_is_unsealed,
        a_row_of_another_key_is_unsealed,
    }
    sharing: {
        the_sequencers_lock_is_one_stores_until_it_is_dropped,
        a_duty_that_was_left_is_anybodys_at_once,
        a_commit_wakes_who_waits_at_this_store_and_at_another,
        a_commit_just_before_the_wait_is_not_waited_out,
        patience_ends_without_a_commit,
        two_stores_see_each_others_commits_and_lose_none,
    }
    opening: {
        opening_again_changes_nothing,
        stores_that_open_a_new_database_at_once_all_succeed,
        a_database_that_a_newer_version_had_is_refused,
        a_database_with_another_migration_of_a_known_number_is_refused,
    }
    overload: {
        when_too_much_is_queued_the_rest_is_told_to_come_again,
    }
}
