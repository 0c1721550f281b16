<?php
// SPDX-License-Identifier: Apache-2.0
// wp-install.php DOCROOT SOCKET: makes the database, has WordPress install itself, with pretty permalinks.
list(, $docroot, $socket) = $argv;
$_SERVER += array('SERVER_SOFTWARE' => 'Apache', 'REQUEST_METHOD' => 'GET');
$_SERVER['HTTP_HOST'] = $_SERVER['SERVER_NAME'] = 'localhost';
$_SERVER['REQUEST_URI'] = '/';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
define('WP_INSTALLING', true);

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$database = new mysqli('localhost', 'root', '', '', 0, $socket);
$database->query('CREATE DATABASE wordpress');

// No mail that a site was made.
function wp_new_blog_notification() {}

require "$docroot/wp-load.php";
require ABSPATH . 'wp-admin/includes/admin.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
add_filter('pre_http_request', function () {
    return new WP_Error('private', 'nothing is asked for');
});
add_filter('got_rewrite', '__return_true');
wp_install('A site', 'admin', 'admin@example.org', true, '', 'password');
$wp_rewrite->set_permalink_structure('/%postname%/');
$wp_rewrite->flush_rules(true);
